//! API keys: `swy_<region>_<30 random base62><checksum>`.
//!
//! The checksum (CRC-32 of all before it, base62, six digits) tells a mistyped key from an unknown one without a look
//! into the database, where only a keyed hash stands.

const PREFIX: &str = "swy_";
const RANDOM_LENGTH: usize = 30;
const CHECKSUM_LENGTH: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A well-formed key; whether it exists is another matter. It is a secret: neither `Debug` nor `Display` shows it.
pub struct ApiKeyText {
    text: String,
    region: String,
}

impl ApiKeyText {
    /// Reads a key; nothing when it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (region, tail) = text.strip_prefix(PREFIX)?.rsplit_once('_')?;
        let well_formed = is_region(region)
            && tail.len() == RANDOM_LENGTH + CHECKSUM_LENGTH
            && tail.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !well_formed {
            return None;
        }
        let (body, sum) = text.split_at(text.len() - CHECKSUM_LENGTH);
        (checksum(body) == sum).then(|| Self {
            text: text.to_owned(),
            region: region.to_owned(),
        })
    }

    /// A new key of a region.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate(region: &str) -> Result<Self, getrandom::Error> {
        let mut text = format!("{PREFIX}{region}_");
        let wanted = text.len() + RANDOM_LENGTH;
        while text.len() < wanted {
            let mut random = [0_u8; 64];
            getrandom::fill(&mut random)?;
            // Bytes past the last whole multiple of 62 would make some digits likelier than others.
            let digits = random
                .iter()
                .filter(|byte| **byte < 248)
                .map(|byte| char::from(DIGITS[usize::from(byte % 62)]));
            text.extend(digits.take(wanted - text.len()));
        }
        text.push_str(&checksum(&text));
        Ok(Self {
            text,
            region: region.to_owned(),
        })
    }

    /// The region whose servers know the key.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The key itself.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Whether a text can name a region: it is part of every key.
pub fn is_region(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn checksum(text: &str) -> String {
    let mut rest = u64::from(crc32fast::hash(text.as_bytes()));
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(rest % 62).unwrap_or_default()];
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_generated_key_is_well_formed_and_its_own() {
        let key = ApiKeyText::generate("eu1").unwrap();
        let text = key.text().to_owned();
        assert_eq!(text.len(), "swy_eu1_".len() + 36);
        assert_eq!(ApiKeyText::parse(&text).unwrap().region(), "eu1");
        assert_ne!(text, ApiKeyText::generate("eu1").unwrap().text());
    }

    #[test]
    fn any_changed_character_makes_it_malformed() {
        let text = ApiKeyText::generate("local").unwrap().text().to_owned();
        for position in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[position] = if changed[position] == b'x' { b'y' } else { b'x' };
            assert!(
                ApiKeyText::parse(&String::from_utf8(changed).unwrap()).is_none(),
                "position {position}"
            );
        }
        for wrong in ["", "swy_", "swy__", "swy_local_", "bearer", "swy_local_ä"] {
            assert!(ApiKeyText::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_checksum_is_the_documented_one() {
        // CRC-32 (IEEE) of "123456789" is 0xCBF43926.
        assert_eq!(checksum("123456789"), {
            let mut rest = 0xCBF4_3926_u64;
            let mut digits = Vec::new();
            for _ in 0..6 {
                digits.insert(0, char::from(DIGITS[(rest % 62) as usize]));
                rest /= 62;
            }
            digits.into_iter().collect::<String>()
        });
    }
}
