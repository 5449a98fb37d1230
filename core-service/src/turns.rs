//! Turns: a resource that everybody needs, shared evenly among organizations.
//!
//! So many may hold a turn at once, and so many of one organization. Whoever comes later waits in the line of its own
//! organization, and a turn that is given back goes to the lines in rotation: whatever an organization has waiting, it
//! delays the others by one turn each time round. How many turns one may hold can be less while others hold or want some
//! ([`Share`]). While nobody waits, a turn costs a lock for a moment.
//!
//! For whom something is done is known where a call is admitted or a node is executed, and not where a connection is
//! needed; so it is said once, with [`on_behalf_of`]. What nobody is named for stands in a line of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

tokio::task_local! {
    static CALLER: Arc<str>;
}

/// Does something for an organization.
pub fn on_behalf_of<F: Future>(organization_id: Arc<str>, work: F) -> impl Future<Output = F::Output> {
    CALLER.scope(organization_id, work)
}

/// Hands out turns. Cheap to clone; all clones are the same turns.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

/// The right to go on. Given back when dropped.
pub struct Turn {
    organization_id: Arc<str>,
    shared: Arc<Shared>,
}

/// Too many wait for a turn already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much is waiting, try again later")]
pub struct TooManyWait;

/// How many turns one organization may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// While nobody else holds or wants one.
    pub alone: usize,
    /// While others do: few, so that theirs come soon.
    pub beside: usize,
}

struct Shared {
    at_once: usize,
    share: Share,
    most_waiting: usize,
    state: Mutex<State>,
}

/// While `taken` is below the most, `next` is empty. Each line that waits and may have one turn more is in `next`.
#[derive(Default)]
struct State {
    taken: usize,
    waiting: usize,
    /// Those of organizations that hold a turn or wait for one.
    lines: HashMap<Arc<str>, Line>,
    /// Organizations that wait and may have one turn more, in rotation.
    next: VecDeque<Arc<str>>,
    /// Counts those who have waited.
    tickets: u64,
}

/// One organization's.
#[derive(Default)]
struct Line {
    taken: usize,
    /// By ticket, ascending.
    waiting: VecDeque<(u64, Granted)>,
    is_next: bool,
}

/// Where a turn is sent to who waits for it.
type Granted = oneshot::Sender<Turn>;

impl Turns {
    /// So many turns at once, and of them for one organization what its share says. As many callers may wait as
    /// `most_waiting` says: those of one organization as many as it leaves free for the others.
    pub fn new(at_once: usize, share: Share, most_waiting: usize) -> Self {
        Self(Arc::new(Shared {
            at_once: at_once.max(1),
            share: Share {
                alone: share.alone.max(1),
                beside: share.beside.max(1),
            },
            most_waiting,
            state: Mutex::default(),
        }))
    }

    /// Waits for a turn. Whoever stops waiting leaves the line.
    ///
    /// # Errors
    /// When too many wait.
    pub async fn turn(&self, organization_id: &str) -> Result<Turn, TooManyWait> {
        let entered = self.0.enter(organization_id)?;
        match entered {
            Entered::Turn(turn) => Ok(turn),
            // It stands in the line until it is sent.
            Entered::Line(mut place) => (&mut place.granted).await.map_err(|_| TooManyWait),
        }
    }

    /// As [`Turns::turn`], for the organization that this is done for.
    ///
    /// # Errors
    /// When too many wait.
    pub async fn turn_of_caller(&self) -> Result<Turn, TooManyWait> {
        let nobody = || Arc::from("");
        let caller = CALLER.try_with(Arc::clone).unwrap_or_else(|_| nobody());
        self.turn(&caller).await
    }

    /// Turns that are taken.
    pub fn taken(&self) -> usize {
        self.0.state().taken
    }

    /// Callers who wait.
    pub fn waiting(&self) -> usize {
        self.0.state().waiting
    }
}

/// What whoever comes finds.
enum Entered {
    Turn(Turn),
    Line(Place),
}

/// A place in a line. Left when dropped.
struct Place {
    ticket: u64,
    granted: oneshot::Receiver<Turn>,
    organization_id: Arc<str>,
    shared: Arc<Shared>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.state().leave(&self.organization_id, self.ticket);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.give_back(&self.organization_id);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(self: &Arc<Self>, organization_id: Arc<str>) -> Turn {
        Turn {
            organization_id,
            shared: Arc::clone(self),
        }
    }

    fn enter(self: &Arc<Self>, organization_id: &str) -> Result<Entered, TooManyWait> {
        let mut state = self.state();
        let organization_id = state.key(organization_id);
        let State {
            taken,
            waiting,
            lines,
            next,
            tickets,
        } = &mut *state;
        let others = lines.len() - usize::from(lines.contains_key(&organization_id));
        let most = self.share.beside_so_many(others);
        let line = lines.entry(Arc::clone(&organization_id)).or_default();
        if *taken < self.at_once && line.taken < most {
            *taken += 1;
            line.taken += 1;
            drop(state);
            return Ok(Entered::Turn(self.turn(organization_id)));
        }
        if line.waiting.len().saturating_add(*waiting) >= self.most_waiting {
            state.forget(&organization_id);
            return Err(TooManyWait);
        }
        let (granted, receiver) = oneshot::channel();
        *tickets += 1;
        *waiting += 1;
        line.waiting.push_back((*tickets, granted));
        line.come_next(most, &organization_id, next);
        let ticket = *tickets;
        drop(state);
        Ok(Entered::Line(Place {
            ticket,
            granted: receiver,
            organization_id,
            shared: Arc::clone(self),
        }))
    }

    fn give_back(self: &Arc<Self>, organization_id: &Arc<str>) {
        let granted = {
            let mut state = self.state();
            state.give_back(organization_id, self.share);
            self.grant(&mut state)
        };
        for (granted, turn) in granted {
            // Whoever has gone gives it back with that.
            let _gone = granted.send(turn);
        }
    }

    /// Gives what turns there are to those whose turn it is.
    fn grant(self: &Arc<Self>, state: &mut State) -> Vec<(Granted, Turn)> {
        let mut all = Vec::new();
        while state.taken < self.at_once {
            let Some(organization_id) = state.next.pop_front() else {
                break;
            };
            let most = self.share.beside_so_many(state.lines.len().saturating_sub(1));
            let Some(line) = state.lines.get_mut(&organization_id) else {
                continue;
            };
            line.is_next = false;
            match line.waiting.pop_front() {
                Some((_, granted)) => {
                    line.taken += 1;
                    line.come_next(most, &organization_id, &mut state.next);
                    state.taken += 1;
                    state.waiting -= 1;
                    all.push((granted, self.turn(organization_id)));
                }
                // All have left.
                None => state.forget(&organization_id),
            }
        }
        all
    }
}

impl State {
    fn key(&self, organization_id: &str) -> Arc<str> {
        let known = self.lines.get_key_value(organization_id);
        known.map_or_else(|| organization_id.into(), |(key, _)| Arc::clone(key))
    }

    fn give_back(&mut self, organization_id: &Arc<str>, share: Share) {
        self.taken -= 1;
        let most = share.beside_so_many(self.lines.len().saturating_sub(1));
        if let Some(line) = self.lines.get_mut(organization_id) {
            line.taken -= 1;
            line.come_next(most, organization_id, &mut self.next);
        }
        self.forget(organization_id);
        self.whoever_is_alone(share);
    }

    /// Who has become the only one may have more.
    fn whoever_is_alone(&mut self, share: Share) {
        if self.lines.len() == 1
            && let Some((organization_id, line)) = self.lines.iter_mut().next()
        {
            line.come_next(share.alone, organization_id, &mut self.next);
        }
    }

    fn leave(&mut self, organization_id: &Arc<str>, ticket: u64) {
        if let Some(line) = self.lines.get_mut(organization_id)
            && let Ok(place) = line.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket)
        {
            line.waiting.remove(place);
            self.waiting -= 1;
        }
        self.forget(organization_id);
    }

    /// Forgets a line that nobody needs.
    fn forget(&mut self, organization_id: &Arc<str>) {
        let is_idle = |line: &Line| line.taken == 0 && line.waiting.is_empty() && !line.is_next;
        if self.lines.get(organization_id).is_some_and(is_idle) {
            self.lines.remove(organization_id);
        }
    }
}

impl Share {
    /// The same for all, whoever else is there.
    pub fn of_each(most: usize) -> Self {
        Self {
            alone: most,
            beside: most,
        }
    }

    fn beside_so_many(self, others: usize) -> usize {
        match others {
            0 => self.alone,
            _ => self.beside,
        }
    }
}

impl Line {
    /// Joins the rotation, once, if anybody waits who may have a turn.
    fn come_next(&mut self, most: usize, organization_id: &Arc<str>, next: &mut VecDeque<Arc<str>>) {
        if !self.is_next && !self.waiting.is_empty() && self.taken < most {
            self.is_next = true;
            next.push_back(Arc::clone(organization_id));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio::task::{JoinSet, yield_now};

    use super::*;

    /// Lets so many of an organization wait; each says when it has its turn, and holds it until it is heard.
    fn crowd(
        turns: &Turns,
        organization_id: &'static str,
        size: usize,
        said: &tokio::sync::mpsc::UnboundedSender<(&'static str, Turn)>,
    ) -> JoinSet<()> {
        let wait = || {
            let (turns, said) = (turns.clone(), said.clone());
            async move {
                let turn = turns.turn(organization_id).await.unwrap();
                said.send((organization_id, turn)).unwrap();
            }
        };
        (0..size).map(|_| wait()).collect()
    }

    /// Whose turns come one after the other, each when the one before is given back.
    async fn order(heard: &mut UnboundedReceiver<(&'static str, Turn)>, size: usize) -> Vec<&'static str> {
        let mut order = Vec::new();
        while order.len() < size {
            let (organization_id, turn) = heard.recv().await.unwrap();
            order.push(organization_id);
            drop(turn);
        }
        order
    }

    #[tokio::test]
    async fn turns_go_round_among_organizations() {
        let turns = Turns::new(1, Share::of_each(1), usize::MAX);
        let (said, mut heard) = unbounded_channel();
        let first = turns.turn("flood").await.unwrap();
        let _flood = crowd(&turns, "flood", 100, &said);
        while turns.waiting() < 100 {
            yield_now().await;
        }
        let _quiet = crowd(&turns, "quiet", 2, &said);
        let _other = crowd(&turns, "other", 1, &said);
        while turns.waiting() < 103 {
            yield_now().await;
        }
        drop(first);
        // Who has its share stands behind those who have none.
        let expected = ["quiet", "other", "flood", "quiet", "flood", "flood"];
        assert_eq!(order(&mut heard, expected.len()).await, expected);
        order(&mut heard, 97).await;
        assert_eq!((turns.taken(), turns.waiting()), (0, 0));
        assert!(turns.0.state().lines.is_empty(), "nothing is remembered");
    }

    #[tokio::test]
    async fn an_organization_has_its_share_and_no_more() {
        let turns = Turns::new(3, Share::of_each(2), usize::MAX);
        let first = turns.turn("flood").await.unwrap();
        let _second = turns.turn("flood").await.unwrap();
        let third = turns.turn("flood");
        tokio::pin!(third);
        tokio::select! {
            biased;
            _ = &mut third => panic!("beyond the organization's share"),
            turn = turns.turn("quiet") => assert!(turn.is_ok()),
        }
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn a_share_is_smaller_while_others_are_there() {
        let share = Share { alone: 3, beside: 1 };
        let turns = Turns::new(4, share, usize::MAX);
        let flood: Vec<Turn> = vec![
            turns.turn("flood").await.unwrap(),
            turns.turn("flood").await.unwrap(),
        ];
        let quiet = turns.turn("quiet").await.unwrap();
        let (said, mut heard) = unbounded_channel();
        let _waiting = crowd(&turns, "flood", 3, &said);
        while turns.waiting() < 3 {
            yield_now().await;
        }
        drop(flood);
        let (_, first) = heard.recv().await.unwrap();
        assert_eq!(
            (turns.taken(), turns.waiting()),
            (2, 2),
            "one, beside the other's"
        );
        drop(quiet);
        let (_, second) = heard.recv().await.unwrap();
        let (_, third) = heard.recv().await.unwrap();
        assert_eq!((turns.taken(), turns.waiting()), (3, 0), "alone again");
        drop((first, second, third));
        assert!(turns.0.state().lines.is_empty(), "nothing is remembered");
    }

    #[tokio::test]
    async fn turns_are_of_whom_something_is_done_for() {
        let turns = Turns::new(2, Share::of_each(1), usize::MAX);
        let _own = turns.turn("a").await.unwrap();
        let (of_a, of_nobody) = (
            on_behalf_of("a".into(), turns.turn_of_caller()),
            turns.turn_of_caller(),
        );
        tokio::pin!(of_a);
        tokio::select! {
            biased;
            _ = &mut of_a => panic!("beyond the organization's share"),
            turn = of_nobody => assert!(turn.is_ok()),
        }
    }

    #[test]
    fn an_organization_waits_where_there_is_room_for_others() {
        let turns = Turns::new(1, Share::of_each(1), 4);
        let enter = |organization_id| turns.0.enter(organization_id);
        let _turn = enter("flood").unwrap();
        let first = enter("flood").unwrap();
        let _second = enter("flood").unwrap();
        assert!(enter("flood").is_err(), "as many as are free");
        let _other = enter("quiet").unwrap();
        assert!(enter("quiet").is_err());
        let _last = enter("third").unwrap();
        assert!(enter("fourth").is_err(), "all places are taken");
        drop(first);
        assert!(enter("fourth").is_ok(), "who leaves makes room");
    }

    #[tokio::test]
    async fn a_turn_for_whoever_has_gone_goes_to_the_next() {
        let turns = Turns::new(1, Share::of_each(1), usize::MAX);
        let (said, mut heard) = unbounded_channel();
        let first = turns.turn("a").await.unwrap();
        let mut gone = crowd(&turns, "a", 1, &said);
        while turns.waiting() < 1 {
            yield_now().await;
        }
        let _stays = crowd(&turns, "b", 1, &said);
        while turns.waiting() < 2 {
            yield_now().await;
        }
        gone.abort_all();
        while gone.join_next().await.is_some() {}
        assert_eq!(turns.waiting(), 1);
        drop(first);
        assert_eq!(order(&mut heard, 1).await, ["b"]);
        assert!(turns.0.state().lines.is_empty(), "nothing is remembered");
    }
}
