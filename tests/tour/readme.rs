//! The README as sections and their shell blocks.

/// A section of the README, its heading left out.
pub(crate) struct Section {
    heading: String,
    text: String,
}

impl Section {
    /// The section under a heading of the second level.
    pub(crate) fn of_readme(heading: &str) -> Self {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
        Self::find(&readme, "\n## ", heading)
    }

    /// The part under a heading of the third level.
    pub(crate) fn part(&self, heading: &str) -> Self {
        Self::find(&self.text, "\n### ", heading)
    }

    fn find(text: &str, mark: &str, heading: &str) -> Self {
        let mut found = text
            .split(mark)
            .skip(1)
            .filter_map(|section| section.split_once('\n'));
        let (heading, text) = found
            .find(|(title, _)| *title == heading)
            .unwrap_or_else(|| panic!("the README has no heading {heading:?}"));
        Self {
            heading: heading.to_owned(),
            // The parts of a section need a line end before their marks.
            text: format!("\n{text}"),
        }
    }

    /// What the shell blocks say, one after the other.
    pub(crate) fn commands(&self) -> String {
        let commands = blocks(&self.text);
        assert!(!commands.is_empty(), "{} has no shell block", self.heading);
        commands
    }

    /// As [`Self::commands`], of what stands before the first part.
    pub(crate) fn commands_before_parts(&self) -> String {
        blocks(self.text.split("\n### ").next().unwrap_or_default())
    }

    /// The line of a shell block that begins so.
    pub(crate) fn line_starting(&self, start: &str) -> String {
        let commands = self.commands();
        let line = commands.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{} has no line {start:?}", self.heading))
            .to_owned()
    }
}

fn blocks(text: &str) -> String {
    let bodies = text
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    bodies.collect()
}
