//! Commits at which a process can be told to die, so that tests see what a crash leaves on either side of each.
//!
//! In builds with debug assertions alone: a release build has neither the option nor the code that dies.

#[cfg(debug_assertions)]
pub use armed::{Failpoint, arm, reach};

/// What a transaction makes durable, as far as the outside world hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// A run begins.
    Start,
    /// A run begins for an instant of a schedule, which moves on.
    Fire,
    /// Something happened in a run that goes on.
    Segment,
    /// A run leaves memory until its timer is due.
    Sleep,
    /// A node asks a person.
    Ask,
    /// The answer of a person, or of another run, is taken in.
    Answer,
    /// A run ends.
    End,
    /// A run ends that somebody has to be told of.
    Ending,
    /// A run that had ended begins again.
    Restart,
    /// Runs that nobody drives are claimed: timers are due, a process was lost.
    Claim,
    /// A sleeping run is claimed by whoever has a request for it.
    Wake,
    /// Schedules are claimed.
    ClaimSchedules,
    /// Ends of runs are claimed, to tell of them.
    ClaimEndings,
    /// All have been told of an end.
    Told,
    /// A node writes to a table, and that it did.
    Effect,
    /// A process gives up its runs in an orderly stop.
    Retire,
}

/// Before or after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing of it is durable.
    Before,
    /// All of it is durable, and nobody knows.
    After,
}

impl Boundary {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Start,
        Self::Fire,
        Self::Segment,
        Self::Sleep,
        Self::Ask,
        Self::Answer,
        Self::End,
        Self::Ending,
        Self::Restart,
        Self::Claim,
        Self::Wake,
        Self::ClaimSchedules,
        Self::ClaimEndings,
        Self::Told,
        Self::Effect,
        Self::Retire,
    ];
}

/// Nothing dies in a release build.
#[cfg(not(debug_assertions))]
pub const fn reach(_: Side, _: &[Boundary]) {}

#[cfg(debug_assertions)]
mod armed {
    use std::fmt;
    use std::str::FromStr;
    use std::sync::OnceLock;

    use super::{Boundary, Side};

    /// Where to die, written `before:end` or `after:start`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Failpoint {
        /// On which side.
        pub side: Side,
        /// Of which commit.
        pub boundary: Boundary,
    }

    impl fmt::Display for Failpoint {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            let text = format!("{:?}:{:?}", self.side, self.boundary);
            formatter.write_str(&text.to_lowercase())
        }
    }

    impl FromStr for Failpoint {
        type Err = String;

        fn from_str(text: &str) -> Result<Self, String> {
            let sides = |boundary| [Side::Before, Side::After].map(|side| Self { side, boundary });
            let found = Boundary::ALL
                .into_iter()
                .flat_map(sides)
                .find(|failpoint| failpoint.to_string() == text);
            found.ok_or_else(|| format!("{text:?} is no failpoint; one is written like before:end"))
        }
    }

    static ARMED: OnceLock<Failpoint> = OnceLock::new();

    /// Lets the process die when it gets there.
    pub fn arm(failpoint: Failpoint) {
        // A process dies once.
        let _first = ARMED.set(failpoint);
    }

    /// The process is on this side of a commit of these boundaries.
    pub fn reach(side: Side, boundaries: &[Boundary]) {
        let Some(armed) = ARMED.get() else { return };
        if armed.side == side && boundaries.contains(&armed.boundary) {
            tracing::error!(failpoint = %armed, "the process dies, as it was told to");
            std::process::abort();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_failpoint_is_read_as_it_is_written() {
            for boundary in Boundary::ALL {
                let failpoint = Failpoint {
                    side: Side::After,
                    boundary,
                };
                assert_eq!(failpoint.to_string().parse(), Ok(failpoint));
            }
            assert!("after:noon".parse::<Failpoint>().is_err());
        }
    }
}
