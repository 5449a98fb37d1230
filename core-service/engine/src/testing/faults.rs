//! What goes wrong in a simulated cluster, and how often.

use super::random::Random;

/// How often what goes wrong, in a thousand steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// The process dies: before its events are durable, or after that and before their commands are carried out.
    pub(crate) crash: usize,
    /// Another process takes the run over from one that lives on.
    pub(crate) lease_loss: usize,
    /// A result or a timer of before is reported once more.
    pub(crate) duplicate: usize,
    /// A timer fires before its time.
    pub(crate) early_timer: usize,
    /// An execution takes very long.
    pub(crate) slow: usize,
    /// Somebody cancels the run.
    pub(crate) cancel: usize,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        crash: 0,
        lease_loss: 0,
        duplicate: 0,
        early_timer: 0,
        slow: 0,
        cancel: 0,
    };

    pub(crate) fn choose(random: &mut Random) -> Self {
        let rates = [0, 50, 200, 400];
        Self {
            crash: random.pick(&rates),
            lease_loss: random.pick(&rates),
            duplicate: random.pick(&rates),
            early_timer: random.pick(&rates),
            slow: random.pick(&rates),
            cancel: random.pick(&[0, 0, 80]),
        }
    }
}
