//! The known name that a misspelt one probably meant.

use strsim::damerau_levenshtein;

/// The nearest of the known names by edit distance, if no more than a third of the word would have to change.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distance = |name: &str| damerau_levenshtein(&lower, &name.to_lowercase());
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The end of an error message: a suggestion, or nothing.
pub fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |near| format!(", did you mean '{near}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_fewest_changes_is_suggested_and_nothing_like_it_gets_none() {
        let known = ["linger.ms", "batch.size", "acks"];
        assert_eq!(nearest("lingr.ms", known), Some("linger.ms"));
        assert_eq!(nearest("Batch.Size", known), Some("batch.size"));
        assert_eq!(nearest("akcs", known), Some("acks"));
        assert_eq!(nearest("compression.type", known), None);
    }
}
