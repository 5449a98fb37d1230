//! The comments of the protos, by the place of what they describe.

use std::collections::HashMap;

use prost_reflect::FileDescriptor;

/// The leading comment of everything in some files.
pub(super) struct Comments(HashMap<(String, Vec<i32>), String>);

impl Comments {
    pub fn new(files: impl Iterator<Item = FileDescriptor>) -> Self {
        let mut comments = HashMap::new();
        let mut seen = Vec::new();
        for file in files {
            if seen.contains(&file) {
                continue;
            }
            let locations = file
                .file_descriptor_proto()
                .source_code_info
                .iter()
                .flat_map(|info| &info.location);
            for location in locations {
                let text = location.leading_comments().trim();
                if !text.is_empty() {
                    comments.insert((file.name().to_owned(), location.path.clone()), joined(text));
                }
            }
            seen.push(file);
        }
        Self(comments)
    }

    /// The comment on what stands at a path of a file; empty when there is none.
    pub fn of(&self, file: &FileDescriptor, path: &[i32]) -> &str {
        self.0
            .get(&(file.name().to_owned(), path.to_vec()))
            .map_or("", String::as_str)
    }
}

/// A comment's lines as one.
fn joined(comment: &str) -> String {
    comment.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
