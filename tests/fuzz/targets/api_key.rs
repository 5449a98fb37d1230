//! An API key: what is read is what is printed, and nothing else is.
//!
//! The input is a key, or a region and 30 characters with a blank between them: a key but for its checksum.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::api_key::{ApiKeyText, is_region};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH: usize = 30;
const CHECKSUM_LENGTH: u32 = 6;

fuzz_target!(|text: &str| {
    if let Some(key) = ApiKeyText::parse(text) {
        is_printed(text, &key);
    }
    let Some((region, random)) = text.split_once(' ') else {
        return;
    };
    let body = format!("swy_{region}_{random}");
    let made = format!("{body}{}", checksum(&body));
    let is_random = random.len() == RANDOM_LENGTH && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match ApiKeyText::parse(&made) {
        Some(key) => {
            assert!(is_region(region) && is_random, "{made}");
            is_printed(&made, &key);
        }
        None => assert!(!is_region(region) || !is_random, "{made}"),
    }
});

fn is_printed(text: &str, key: &ApiKeyText) {
    assert_eq!(key.text(), text);
    assert!(is_region(key.region()));
    let rest = text
        .strip_prefix(&format!("swy_{}_", key.region()))
        .expect("begins with its region");
    let (random, sum) = rest.split_at(RANDOM_LENGTH);
    let body = &text[..text.len() - sum.len()];
    assert!(random.is_ascii() && sum == checksum(body), "{text}");
    for (place, digit) in text.char_indices() {
        let other = if digit == '7' { "8" } else { "7" };
        let mistyped = format!("{}{other}{}", &text[..place], &text[place + 1..]);
        assert!(ApiKeyText::parse(&mistyped).is_none(), "{mistyped}");
    }
}

/// CRC-32 (IEEE) in base 62, as the contract says it.
fn checksum(body: &str) -> String {
    let sum = crc32fast::hash(body.as_bytes());
    // 62 to the power of five is below 2^32, to the power of six above.
    let digits = (0..CHECKSUM_LENGTH)
        .rev()
        .map(|place| sum / 62_u32.pow(place) % 62);
    digits.map(|digit| char::from(DIGITS[digit as usize])).collect()
}
