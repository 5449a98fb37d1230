//! Which keys a server may prove itself by. There is no trust on first use: a connection names the key beforehand.

use russh::keys::{HashAlg, PublicKey};

use crate::native::Failure;

/// The keys that a connection's field `hostKey` names, by their fingerprints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostKeys(Vec<String>);

impl HostKeys {
    /// Reads fingerprints (`SHA256:…`) and public keys in OpenSSH's form (`ssh-ed25519 AAAA…`), each on a line or parted by
    /// commas.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let lines = text
            .split(['\n', ','])
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let read = lines.map(fingerprint).collect::<Result<Vec<_>, _>>()?;
        match read.is_empty() {
            true => Err(Failure::Parameters("hostKey must name a key".to_owned())),
            false => Ok(Self(read)),
        }
    }

    /// Whether a key is one of them.
    pub(super) fn hold(&self, key: &PublicKey) -> bool {
        let shown = fingerprint_of(key);
        self.0.contains(&shown)
    }
}

/// `SHA256:` and 43 characters of Base64.
pub(super) fn fingerprint_of(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn fingerprint(line: &str) -> Result<String, Failure> {
    if let Some(hash) = line.strip_prefix("SHA256:") {
        let hash = hash.trim_end_matches('=');
        let is_hash = hash.len() == 43
            && hash
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        if is_hash {
            return Ok(format!("SHA256:{hash}"));
        }
    } else if let Ok(key) = PublicKey::from_openssh(line) {
        return Ok(fingerprint_of(&key));
    }
    let message = "hostKey must be a fingerprint such as SHA256:uNiVztksCsDhcc0u9e8BrqLUIKmoM1mXn3KGMB3Fz4k, as ssh-keygen -lf \
                   shows it, or a public key such as ssh-ed25519 AAAA…";
    Err(Failure::Parameters(message.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    /// What `ssh-keygen -lf` says of it.
    const FINGERPRINT: &str = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";

    #[test]
    fn keys_are_named_by_themselves_or_by_their_fingerprints() {
        let key = PublicKey::from_openssh(KEY).unwrap();
        assert_eq!(fingerprint_of(&key), FINGERPRINT);
        let other = format!("SHA256:{}", "a".repeat(43));
        for named in [
            KEY.to_owned(),
            FINGERPRINT.to_owned(),
            format!("{FINGERPRINT}="),
            format!("{KEY} root@server\n"),
            format!("{other}, {FINGERPRINT}"),
            format!("{other}\n{KEY}"),
        ] {
            assert!(HostKeys::read(&named).unwrap().hold(&key), "{named}");
        }
        assert!(!HostKeys::read(&other).unwrap().hold(&key));
    }

    #[test]
    fn what_names_no_key_is_refused() {
        for wrong in [
            "",
            " \n",
            "SHA256:",
            "SHA256:abc",
            "MD5:16:27",
            "ssh-ed25519 AAAA",
            "any",
        ] {
            assert!(HostKeys::read(wrong).is_err(), "{wrong}");
        }
    }
}
