//! Paging by key and searching by text.

/// Where a page starts: after the row with this sort value and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position<V> {
    /// The last row's value of the column the list is sorted by.
    pub value: V,
    /// The last row's id, which orders rows of equal value.
    pub id: String,
}

/// A `LIKE` pattern (escape character `\`) that finds `query` anywhere in a lower-case text.
pub(super) fn like_pattern(query: &str) -> String {
    let mut pattern = String::with_capacity(query.len() + 2);
    pattern.push('%');
    for character in query.to_lowercase().chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// The form in which a name is compared and sorted: lower case, the same on both databases.
pub(super) fn name_key(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::like_pattern;

    #[test]
    fn wildcards_of_the_query_mean_themselves() {
        assert_eq!(like_pattern("50%_Off\\"), "%50\\%\\_off\\\\%");
        assert_eq!(like_pattern(""), "%%");
        assert_eq!(like_pattern("ÄRGER"), "%ärger%");
    }
}
