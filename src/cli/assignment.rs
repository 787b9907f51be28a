/// A setting with the value it is to have, `NAME=VALUE`.
pub(super) fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("not NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_be_empty_or_hold_equal_signs_and_a_name_may_not() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse_assignment("a=b=c"), pair("a", "b=c"));
        assert_eq!(parse_assignment("a="), pair("a", ""));
        assert!(parse_assignment("=b").is_err() && parse_assignment("a").is_err());
    }
}
