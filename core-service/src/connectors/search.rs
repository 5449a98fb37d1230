//! Search in the catalog: what has most of the query's words is found, and what is found in a name counts most. When nothing
//! has any of them, words that were mistyped by a letter are looked for.

/// Something that can be found.
pub struct Searched<'a> {
    /// Its id and its names.
    pub names: Vec<&'a str>,
    /// What it is for, in single words.
    pub purposes: Vec<&'a str>,
    /// What is said about it.
    pub texts: Vec<&'a str>,
    /// Ids and labels of its parts.
    pub part_names: Vec<&'a str>,
    /// What is said about its parts.
    pub part_texts: Vec<&'a str>,
}

/// The places of what is found, best first; equal ones stay in their order. Shown is what has as many of the query's words as
/// anything has.
pub fn search(query: &str, among: &[Searched<'_>]) -> Vec<usize> {
    let query = comparable(query);
    let words: Vec<&str> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let found = ranked(&words, among, likeness);
    match found.is_empty() {
        true => ranked(&words, among, resemblance),
        false => found,
    }
}

/// How well a text is found by a word, if it is.
type Likeness = fn(&str, &str) -> Option<u32>;

fn ranked(words: &[&str], among: &[Searched<'_>], likeness: Likeness) -> Vec<usize> {
    let scores = among.iter().map(|searched| searched.score(words, likeness));
    let mut found: Vec<(Score, usize)> = scores.zip(0..).filter(|(score, _)| score.words > 0).collect();
    let most = found
        .iter()
        .map(|(score, _)| score.words)
        .max()
        .unwrap_or_default();
    found.retain(|(score, _)| score.words == most);
    found.sort_by_key(|(score, _)| std::cmp::Reverse(score.sum));
    found.into_iter().map(|(_, place)| place).collect()
}

/// What a query makes of something.
#[derive(Default)]
struct Score {
    /// How many of its words are found.
    words: usize,
    /// The sum of their best places.
    sum: u32,
}

impl Searched<'_> {
    fn score(&self, words: &[&str], likeness: Likeness) -> Score {
        let found = words.iter().filter_map(|word| self.score_of(word, likeness));
        found.fold(Score::default(), |score, one| Score {
            words: score.words + 1,
            sum: score.sum + one,
        })
    }

    fn score_of(&self, word: &str, likeness: Likeness) -> Option<u32> {
        let places: [(&[&str], u32); 5] = [
            (&self.names, 100),
            (&self.part_names, 20),
            (&self.purposes, 10),
            (&self.texts, 5),
            (&self.part_texts, 2),
        ];
        let scores = places.iter().filter_map(|(texts, weight)| {
            let best = texts.iter().filter_map(|text| likeness(text, word)).max()?;
            Some(best * weight)
        });
        scores.max()
    }
}

/// In small letters, and with the one word that everybody writes in two ways written in one.
fn comparable(text: &str) -> String {
    text.to_lowercase().replace("e-mail", "email")
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// As a whole, as one of its words, as the beginning of one, or somewhere inside; one thing is found by several.
fn likeness(text: &str, word: &str) -> Option<u32> {
    let text = comparable(text);
    let singular = word.strip_suffix('s').filter(|singular| singular.len() > 2);
    likeness_of(&text, word).or_else(|| likeness_of(&text, singular?))
}

fn likeness_of(text: &str, word: &str) -> Option<u32> {
    if text == word {
        return Some(8);
    }
    let best = parts(text).any(|part| part == word).then_some(4);
    best.or_else(|| parts(text).any(|part| part.starts_with(word)).then_some(2))
        .or_else(|| text.contains(word).then_some(1))
}

/// As one of its words with a letter too many, too few, another one, or two exchanged.
fn resemblance(text: &str, word: &str) -> Option<u32> {
    const SHORTEST: usize = 4;
    let text = comparable(text);
    let is_like = |part: &str| part.len() >= SHORTEST && strsim::osa_distance(part, word) == 1;
    (word.len() >= SHORTEST && parts(&text).any(is_like)).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(name: &'a str, text: &'a str, part: &'a str) -> Searched<'a> {
        Searched {
            names: vec![name],
            purposes: vec![],
            texts: vec![text],
            part_names: vec![part],
            part_texts: vec![],
        }
    }

    #[test]
    fn names_come_before_parts_and_texts() {
        let among = [
            named("Mail", "Sends letters over HTTP", "Send"),
            named("Native", "Node kinds", "http_request"),
            named("HTTP", "Any service", "Request"),
            named("HTTP tools", "More", "x"),
        ];
        assert_eq!(search("http", &among), [2, 3, 1, 0]);
        assert_eq!(search("  Http, REQUEST ", &among), [2, 1]);
        assert_eq!(search("sen", &among), [0]);
        assert_eq!(
            search("http teapot", &among),
            [2, 3, 1, 0],
            "some of it is better than nothing"
        );
        assert!(search("teapot", &among).is_empty());
        assert!(search("--", &among).is_empty());
    }

    #[test]
    fn words_are_found_in_other_forms() {
        let sms = Searched {
            purposes: vec!["sms"],
            ..named("Twilio", "Calls", "Send a message")
        };
        let among = [named("SMTP", "Sends e-mail", "Send an e-mail"), sms];
        assert_eq!(search("e-mails", &among), [0]);
        assert_eq!(search("email", &among), [0]);
        assert_eq!(search("SMS", &among), [1]);
        assert_eq!(search("messages", &among), [1]);
        assert_eq!(search("twillio", &among), [1]);
        assert_eq!(search("twilio", &among), [1]);
        assert!(search("tw", &among) == [1] && search("sxtp x", &among) == [0]);
    }
}
