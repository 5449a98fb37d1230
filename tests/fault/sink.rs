//! The service that nodes call: it remembers every call and the key that came with it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::Response;
use test_support::Target;

pub(crate) struct Sink {
    target: Target,
}

impl Sink {
    /// A sink that answers at once.
    pub(crate) async fn start() -> Self {
        Self {
            target: Target::start(|_| answer()).await,
        }
    }

    /// A sink that does something, for as long as it likes, before it answers.
    pub(crate) async fn start_with<F: Future<Output = ()> + Send + 'static>(
        before: impl Fn(&str) -> F + Send + Sync + 'static,
    ) -> Self {
        let target = Target::start_slow(move |asked| {
            let before = before(asked.uri.path());
            async move {
                before.await;
                answer()
            }
        });
        Self { target: target.await }
    }

    /// The URL that a node gives in its parameters: its path names the run and the node.
    pub(crate) fn url(&self, node: i64) -> String {
        self.target.url(&format!("/{{{{$run.id}}}}/{node}"))
    }

    /// The URL of a path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        self.target.url(path)
    }

    /// What is wrong with the keys of the calls: each node of a run has one key, and no other has the same.
    pub(crate) fn changed_keys(&self) -> Vec<String> {
        let mut by_node: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut by_key: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for asked in self.target.asked() {
            let (node, key) = (
                asked.uri.path().to_owned(),
                asked.header("idempotency-key").to_owned(),
            );
            by_node.entry(node.clone()).or_default().insert(key.clone());
            by_key.entry(key).or_default().insert(node);
        }
        let several = |(of, values): (&String, &BTreeSet<String>)| {
            (values.len() > 1 || of.is_empty()).then(|| format!("{of:?} has {values:?}"))
        };
        let changed = by_node.iter().filter_map(several);
        changed.chain(by_key.iter().filter_map(several)).collect()
    }

    /// How many calls have come to paths that hold this text.
    pub(crate) fn calls_of(&self, part: &str) -> usize {
        let asked = self.target.asked();
        asked
            .iter()
            .filter(|asked| asked.uri.path().contains(part))
            .count()
    }
}

fn answer() -> Response<Bytes> {
    let response = Response::builder().header("content-type", "application/json");
    response.body(Bytes::from_static(b"{\"ok\":true}")).unwrap()
}
