//! Keys under which the service itself finds the runs it has started.

/// How long they are kept, in milliseconds: longer than any outage after which a start may be repeated.
pub(super) const KEY_LIFETIME_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A key that no caller can use: theirs have no spaces.
pub(super) fn service_key(text: &str) -> String {
    format!("service {text}")
}
