//! Identifiers: a prefix that names the noun, an underscore, and 128 bits in 26 characters of Crockford's base 32
//! (the `TypeID` form). They carry a version 7 UUID, so they sort by creation; within one process strictly so.
//!
//! The ids of webhooks and registrations are the exception: their URL is a capability, so all 128 bits come from the operating system.

use std::sync::{LazyLock, Mutex};

use uuid::{ContextV7, Timestamp, Uuid};

use crate::clock;

/// The nouns that have ids; each is one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `wf_`
    Workflow,
    /// `run_`
    Run,
    /// `var_`
    Variable,
    /// `cred_`
    Credential,
    /// `db_`
    Database,
    /// `col_`
    Column,
    /// `row_`
    Row,
    /// `struct_`
    Structure,
    /// `fn_`
    Function,
    /// `folder_`
    Folder,
    /// `tag_`
    Tag,
    /// `inv_`
    Invitation,
    /// `team_`
    Team,
    /// `org_`
    Organization,
    /// `user_`
    User,
    /// `evt_`
    Event,
    /// `key_`
    ApiKey,
    /// `wh_`
    Webhook,
    /// `proc_`: a running server, never shown to clients.
    Process,
    /// `sig_`: a message to a run, never shown to clients.
    Signal,
    /// `hreq_`
    HumanRequest,
    /// `hook_`: what the URL ends with that a service calls for a trigger of its app.
    Registration,
}

impl Kind {
    /// The text before the underscore.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Workflow => "wf",
            Self::Run => "run",
            Self::Variable => "var",
            Self::Credential => "cred",
            Self::Database => "db",
            Self::Column => "col",
            Self::Row => "row",
            Self::Structure => "struct",
            Self::Function => "fn",
            Self::Folder => "folder",
            Self::Tag => "tag",
            Self::Invitation => "inv",
            Self::Team => "team",
            Self::Organization => "org",
            Self::User => "user",
            Self::Event => "evt",
            Self::ApiKey => "key",
            Self::Webhook => "wh",
            Self::Process => "proc",
            Self::Signal => "sig",
            Self::HumanRequest => "hreq",
            Self::Registration => "hook",
        }
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LENGTH: usize = 26;

/// Keeps the ids of one millisecond in order.
static SEQUENCE: LazyLock<Mutex<ContextV7>> = LazyLock::new(|| Mutex::new(ContextV7::new()));

/// A new id that sorts after every id this process has made before.
#[must_use]
pub fn new(kind: Kind) -> String {
    let now = clock::now_ms().unsigned_abs();
    let nanoseconds = u32::try_from(now % 1000).unwrap_or_default() * 1_000_000;
    let timestamp = Timestamp::from_unix(&*SEQUENCE, now / 1000, nanoseconds);
    encode(kind, Uuid::new_v7(timestamp).as_u128())
}

/// A new webhook id: 128 bits that nobody can guess.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn new_webhook() -> Result<String, getrandom::Error> {
    unguessable(Kind::Webhook)
}

/// A new id for the URL that a service calls: 128 bits that nobody can guess.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn new_registration() -> Result<String, getrandom::Error> {
    unguessable(Kind::Registration)
}

fn unguessable(kind: Kind) -> Result<String, getrandom::Error> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random)?;
    Ok(encode(kind, u128::from_be_bytes(random)))
}

/// Whether `text` is a well-formed id of this kind. Says nothing about whether the thing exists.
#[must_use]
pub fn is_valid(kind: Kind, text: &str) -> bool {
    let digits = text
        .strip_prefix(kind.prefix())
        .and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|digits| {
        digits.len() == ENCODED_LENGTH
            && digits.bytes().all(|digit| ALPHABET.contains(&digit))
            // 26 digits hold 130 bits; the first one may only use three.
            && digits.as_bytes()[0] <= b'7'
    })
}

/// Whether ids have this character after their underscore.
#[must_use]
pub fn is_digit(character: char) -> bool {
    u8::try_from(character).is_ok_and(|byte| ALPHABET.contains(&byte))
}

fn encode(kind: Kind, bits: u128) -> String {
    let prefix = kind.prefix();
    let mut text = String::with_capacity(prefix.len() + 1 + ENCODED_LENGTH);
    text.push_str(prefix);
    text.push('_');
    for place in (0..ENCODED_LENGTH).rev() {
        let digit = (bits >> (5 * place)) & 31;
        text.push(char::from(ALPHABET[digit as usize]));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Kind, encode, is_valid, new, new_webhook};

    #[test]
    fn ids_of_one_process_rise_strictly() {
        let ids: Vec<String> = (0..5_000).map(|_| new(Kind::Run)).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn encoding_is_the_typeid_one() {
        assert_eq!(encode(Kind::Workflow, 0), "wf_00000000000000000000000000");
        assert_eq!(encode(Kind::Workflow, u128::MAX), "wf_7zzzzzzzzzzzzzzzzzzzzzzzzz");
        // The example of the TypeID specification.
        let example = 0x0188_bac7_4afa_78aa_bc3b_bd1e_ef28_d881;
        assert_eq!(encode(Kind::Run, example), "run_01h2xcejqtf2nbrexx3vqjhp41");
    }

    #[test]
    fn only_the_own_kind_is_valid() {
        assert!(is_valid(Kind::Run, &new(Kind::Run)));
        for wrong in [
            "",
            "run_",
            "run",
            "run_8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "run_0000000000000000000000000u",
        ] {
            assert!(!is_valid(Kind::Run, wrong), "{wrong}");
        }
        assert!(!is_valid(Kind::Run, &new(Kind::Row)));
        assert!(!is_valid(Kind::Run, "run_é000000000000000000000000"));
    }

    #[test]
    fn webhook_ids_differ_in_their_first_digits_too() {
        let ids: HashSet<String> = (0..1_000).filter_map(|_| new_webhook().ok()).collect();
        assert_eq!(ids.len(), 1_000);
        let heads: HashSet<&str> = ids.iter().map(|id| &id[..5]).collect();
        assert!(heads.len() > 100, "the first ten bits must be random");
        assert!(ids.iter().all(|id| is_valid(Kind::Webhook, id)));
    }
}
