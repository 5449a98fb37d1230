//! JSON, encodings and hashes. There is no binary type: bytes are text in hex or base64.

use super::super::EvaluationError;
use super::super::evaluator::Outcome;
use super::text::text;
use super::{Arguments, Function};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use md5::Md5;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use std::borrow::Cow;
use std::fmt::Write as _;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "base64",
        &["text"],
        "The text's bytes (UTF-8) in base64.",
        ("base64(\"hello\")", "\"aGVsbG8=\""),
        base64,
    ),
    Function::new(
        "decodeBase64",
        &["text"],
        "The text (UTF-8) that base64, of the plain or the URL alphabet, spells.",
        ("decodeBase64(\"aGVsbG8=\")", "\"hello\""),
        decode_base64,
    ),
    Function::new(
        "decodeHex",
        &["text"],
        "The text (UTF-8) that pairs of hex digits spell.",
        ("decodeHex(\"6869\")", "\"hi\""),
        decode_hex,
    ),
    Function::new(
        "decodeURL",
        &["text"],
        "The text with %-escapes, and + for a space, resolved.",
        ("decodeURL(\"a%20b%26c\")", "\"a b&c\""),
        decode_url,
    ),
    Function::new(
        "encodeURL",
        &["text"],
        "The text with all but letters, digits and -_.~ as %-escapes.",
        ("encodeURL(\"a b&c\")", "\"a%20b%26c\""),
        encode_url,
    ),
    Function::new(
        "hex",
        &["text"],
        "The text's bytes (UTF-8) as hex digits.",
        ("hex(\"hi\")", "\"6869\""),
        hex,
    ),
    Function::new(
        "hmac",
        &["text", "key", "[algorithm]", "[encoding]"],
        "The HMAC of the text with a key: algorithm sha256 (default), sha512, sha1 or md5; encoding hex (default) or base64.",
        (
            "hmac(\"hello\"; \"key\")",
            "\"9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b\"",
        ),
        hmac,
    ),
    Function::new(
        "md5",
        &["text"],
        "The MD5 hash in hex; fit for checksums, not for secrets.",
        ("md5(\"hello\")", "\"5d41402abc4b2a76b9719d911017c592\""),
        |arguments| text(hex_text(&Md5::digest(arguments.text(0)?.as_bytes()))),
    ),
    Function::new(
        "parseJSON",
        &["text"],
        "The value that a JSON text spells.",
        (r#"parseJSON('{"a":[1,true]}').a"#, "[1,true]"),
        parse_json,
    ),
    Function::new(
        "sha1",
        &["text", "[encoding]", "[key]"],
        "The SHA-1 hash (with a key, the HMAC), in hex (default) or base64.",
        ("sha1(\"hello\")", "\"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\""),
        |arguments| hash(arguments, "sha1"),
    ),
    Function::new(
        "sha256",
        &["text", "[encoding]", "[key]"],
        "The SHA-256 hash (with a key, the HMAC), in hex (default) or base64.",
        (
            "sha256(\"hello\")",
            "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"",
        ),
        |arguments| hash(arguments, "sha256"),
    ),
    Function::new(
        "sha512",
        &["text", "[encoding]", "[key]"],
        "The SHA-512 hash (with a key, the HMAC), in hex (default) or base64.",
        (
            "sha512(\"hello\"; \"base64\")",
            "\"m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw==\"",
        ),
        |arguments| hash(arguments, "sha512"),
    ),
    Function::new(
        "toJSON",
        &["value"],
        "The value as compact JSON text.",
        ("toJSON({a: [1, \"x\"]})", r#""{\"a\":[1,\"x\"]}""#),
        to_json,
    ),
];

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn hex_text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn encoded<'a>(arguments: &Arguments<'a>, bytes: &[u8], encoding: usize) -> Outcome<'a> {
    match arguments.text_or(encoding, "hex")?.as_ref() {
        "hex" => text(hex_text(bytes)),
        "base64" => text(BASE64.encode(bytes)),
        _ => Err(arguments.error("the encoding is \"hex\" or \"base64\"")),
    }
}

/// Bytes as text.
fn decoded<'a>(arguments: &Arguments<'a>, bytes: Vec<u8>) -> Outcome<'a> {
    match String::from_utf8(bytes) {
        Ok(decoded) => text(decoded),
        Err(_) => Err(arguments.error("the bytes are not text in UTF-8")),
    }
}

fn base64<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(BASE64.encode(arguments.text(0)?.as_bytes()))
}

fn decode_base64<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let plain: String = arguments
        .text(0)?
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|character| match character {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let bytes = BASE64
        .decode(plain)
        .map_err(|_| arguments.error("the text is not base64"))?;
    decoded(arguments, bytes)
}

fn hex<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(hex_text(arguments.text(0)?.as_bytes()))
}

fn decode_hex<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let digits: Option<Vec<u8>> = arguments
        .text(0)?
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| digit.try_into().ok()))
        .collect();
    match digits.filter(|digits| digits.len().is_multiple_of(2)) {
        Some(digits) => {
            let bytes = digits
                .chunks_exact(2)
                .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit));
            decoded(arguments, bytes.collect())
        }
        None => Err(arguments.error("the text is not pairs of hex digits")),
    }
}

fn encode_url<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut encoded = String::with_capacity(whole.len());
    for byte in whole.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    text(encoded)
}

fn decode_url<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut bytes = Vec::with_capacity(whole.len());
    let mut rest = whole.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let escape = after
                    .get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .filter(|digits| !digits.starts_with('+'))
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| arguments.error("a % is not followed by two hex digits"))?;
                bytes.push(escape);
                rest = after.get(2..).unwrap_or_default();
            }
            other => bytes.push(other),
        }
    }
    decoded(arguments, bytes)
}

fn keyed<M: Mac + hmac::digest::KeyInit>(
    arguments: &Arguments<'_>,
    key: &str,
    message: &str,
) -> Result<Vec<u8>, EvaluationError> {
    let mut mac =
        <M as Mac>::new_from_slice(key.as_bytes()).map_err(|_| arguments.error("the key is not usable"))?;
    mac.update(message.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hmac_bytes(
    arguments: &Arguments<'_>,
    algorithm: &str,
    key: &str,
    message: &str,
) -> Result<Vec<u8>, EvaluationError> {
    match algorithm {
        "sha256" => keyed::<Hmac<Sha256>>(arguments, key, message),
        "sha512" => keyed::<Hmac<Sha512>>(arguments, key, message),
        "sha1" => keyed::<Hmac<Sha1>>(arguments, key, message),
        "md5" => keyed::<Hmac<Md5>>(arguments, key, message),
        _ => Err(arguments.error("the algorithm is sha256, sha512, sha1 or md5")),
    }
}

fn hmac<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (message, key) = (arguments.text(0)?, arguments.text(1)?);
    let algorithm = arguments.text_or(2, "sha256")?;
    let bytes = hmac_bytes(arguments, &algorithm, &key, &message)?;
    encoded(arguments, &bytes, 3)
}

fn hash<'a>(arguments: &Arguments<'a>, algorithm: &str) -> Outcome<'a> {
    let (message, key) = (arguments.text(0)?, arguments.text(2)?);
    let bytes = match algorithm {
        _ if !key.is_empty() => hmac_bytes(arguments, algorithm, &key, &message)?,
        "sha1" => Sha1::digest(message.as_bytes()).to_vec(),
        "sha256" => Sha256::digest(message.as_bytes()).to_vec(),
        _ => Sha512::digest(message.as_bytes()).to_vec(),
    };
    encoded(arguments, &bytes, 1)
}

fn parse_json<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let spelled = arguments.text(0)?;
    // Paid for before it is built: a text of commas is many times its size as values.
    let values = spelled
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count();
    arguments.budget().spend_values(values)?;
    match serde_json::from_str::<Value>(&spelled) {
        Ok(value) => Ok(Cow::Owned(value)),
        Err(problem) => Err(arguments.error(&format!("the text is not JSON: {problem}"))),
    }
}

fn to_json<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    arguments.budget().spend_copy(&value)?;
    text(value.to_string())
}
