//! Search in the catalog: every word of the query must be found, and what is found in a name counts most.

/// Something that can be found.
pub struct Searched<'a> {
    /// Its id and its names.
    pub names: Vec<&'a str>,
    /// What is said about it.
    pub texts: Vec<&'a str>,
    /// Ids and labels of its parts.
    pub part_names: Vec<&'a str>,
    /// What is said about its parts.
    pub part_texts: Vec<&'a str>,
}

/// The places of what is found, best first; equal ones stay in their order.
pub fn search(query: &str, among: &[Searched<'_>]) -> Vec<usize> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let mut found: Vec<(u32, usize)> = among
        .iter()
        .enumerate()
        .filter_map(|(place, searched)| Some((searched.score(&words)?, place)))
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, place)| place).collect()
}

impl Searched<'_> {
    /// The sum of the words' best scores; nothing when one of them is not found, or there are none.
    fn score(&self, words: &[&str]) -> Option<u32> {
        let scores: Option<Vec<u32>> = words.iter().map(|word| self.score_of(word)).collect();
        scores.map(|scores| scores.iter().sum()).filter(|sum| *sum > 0)
    }

    fn score_of(&self, word: &str) -> Option<u32> {
        let places: [(&[&str], u32); 4] = [
            (&self.names, 100),
            (&self.part_names, 20),
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

/// How well a text is found by a word: as a whole, as one of its words, as the beginning of one, or somewhere inside.
fn likeness(text: &str, word: &str) -> Option<u32> {
    let text = text.to_lowercase();
    if text == word {
        return Some(8);
    }
    let mut parts = text.split(|c: char| !c.is_alphanumeric());
    let best = parts.clone().any(|part| part == word).then_some(4);
    best.or_else(|| parts.any(|part| part.starts_with(word)).then_some(2))
        .or_else(|| text.contains(word).then_some(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(name: &'a str, text: &'a str, part: &'a str) -> Searched<'a> {
        Searched {
            names: vec![name],
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
        assert!(search("http teapot", &among).is_empty());
        assert!(search("--", &among).is_empty());
    }
}
