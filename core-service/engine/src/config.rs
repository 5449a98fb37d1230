//! A node's `config`: what every kind understands, with checked limits.

use serde::{Deserialize, Serialize};

/// Time-out of a node that sets none, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 300_000;
/// Most attempts a retry policy may ask for, the first included.
pub const MAX_ATTEMPTS: u32 = 100;
/// Longest time-out of a node and longest delay between attempts: one day, in milliseconds.
pub const MAX_DELAY_MS: u64 = 86_400_000;
/// Largest growth of the delay between attempts.
pub const MAX_MULTIPLIER: f64 = 10.0;
/// Most iterations of a scope that run at the same time.
pub const MAX_CONCURRENCY: u32 = 100;
/// Longest note, in characters.
pub const MAX_NOTES: usize = 2_000;

/// The settings of a node beside its parameters. Absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeConfig {
    /// Attempts after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Milliseconds an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What a failure without an error edge does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// Passes its input through instead of running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// When several edges lead into the node: how many it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// Iterations of its scope at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// When and how often a failed node is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub max_attempts: u32,
    /// Milliseconds before the second attempt.
    pub delay_ms: u64,
    /// The delay grows by this factor with each attempt.
    pub multiplier: f64,
    /// Milliseconds the delay never exceeds.
    pub max_delay_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            delay_ms: 1_000,
            multiplier: 2.0,
            max_delay_ms: MAX_DELAY_MS,
        }
    }
}

impl Retry {
    /// Milliseconds between the end of attempt `attempt` (from 1) and the next; nothing when no attempt is left.
    pub fn delay_after(&self, attempt: u32) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let growth = self
            .multiplier
            .powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        // A float to integer `as` saturates, which the cap then bounds.
        Some(((self.delay_ms as f64 * growth) as u64).min(self.max_delay_ms))
    }
}

/// What a failure does that no error edge takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The run fails.
    #[default]
    Fail,
    /// The node is recorded as failed and its normal edges are taken.
    Continue,
}

/// How many of its incoming edges a node waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// All are decided and at least one delivered.
    #[default]
    All,
    /// The first that delivers.
    Any,
}

impl NodeConfig {
    /// What exceeds its limits: the path inside the config and a sentence.
    pub fn violations(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut require = |holds: bool, path: &'static str, range: String| {
            if !holds {
                found.push((path, format!("must be {range}")));
            }
        };
        if let Some(retry) = &self.retry {
            let attempts = (1..=MAX_ATTEMPTS).contains(&retry.max_attempts);
            require(attempts, "retry.maxAttempts", format!("from 1 to {MAX_ATTEMPTS}"));
            require(
                retry.delay_ms <= MAX_DELAY_MS,
                "retry.delayMs",
                format!("from 0 to {MAX_DELAY_MS}"),
            );
            let multiplier = (1.0..=MAX_MULTIPLIER).contains(&retry.multiplier);
            require(
                multiplier,
                "retry.multiplier",
                format!("from 1 to {MAX_MULTIPLIER}"),
            );
            require(
                retry.max_delay_ms <= MAX_DELAY_MS,
                "retry.maxDelayMs",
                format!("from 0 to {MAX_DELAY_MS}"),
            );
        }
        let timeout = self.timeout_ms.is_none_or(|ms| (1..=MAX_DELAY_MS).contains(&ms));
        require(timeout, "timeoutMs", format!("from 1 to {MAX_DELAY_MS}"));
        let concurrency = self
            .concurrency
            .is_none_or(|n| (1..=MAX_CONCURRENCY).contains(&n));
        require(concurrency, "concurrency", format!("from 1 to {MAX_CONCURRENCY}"));
        let notes = self
            .notes
            .as_ref()
            .is_none_or(|notes| notes.chars().count() <= MAX_NOTES);
        require(notes, "notes", format!("at most {MAX_NOTES} characters"));
        found
    }

    /// Milliseconds an attempt may take.
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }

    /// Whether the node passes its input through.
    pub fn is_disabled(&self) -> bool {
        self.disabled.unwrap_or(false)
    }

    /// How many incoming edges the node waits for.
    pub fn join(&self) -> Join {
        self.join.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_end() {
        let retry = Retry {
            max_attempts: 5,
            delay_ms: 100,
            multiplier: 3.0,
            max_delay_ms: 800,
        };
        let delays: Vec<_> = (1..=5).map(|attempt| retry.delay_after(attempt)).collect();
        assert_eq!(delays, [Some(100), Some(300), Some(800), Some(800), None]);
    }

    #[test]
    fn the_default_is_one_attempt() {
        assert_eq!(Retry::default().delay_after(1), None);
    }

    #[test]
    fn limits_name_their_paths() {
        let config: NodeConfig = serde_json::from_str(
            r#"{"retry": {"maxAttempts": 0, "multiplier": 0.5}, "timeoutMs": 0, "concurrency": 101}"#,
        )
        .unwrap();
        let paths: Vec<_> = config.violations().into_iter().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "retry.maxAttempts",
                "retry.multiplier",
                "timeoutMs",
                "concurrency"
            ]
        );
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(serde_json::from_str::<NodeConfig>(r#"{"retries": 3}"#).is_err());
    }
}
