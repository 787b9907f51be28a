//! Java's `.properties` format, as Kafka's `server.properties` is written:
//!
//! ```text
//! # a comment, ! another          key = value      key: value      key value
//! key = a value that goes on \
//!       in the next line          \t \n \r \f \uHHHH \\ \= \: \# and \! are escapes; other escaped characters stand for themselves
//! ```

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PropertiesError {
    /// From 1 up; of the natural line where the entry begins.
    pub line: usize,
    pub reason: String,
}

/// One `name=value` of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct PropertiesEntry {
    /// From 1 up; of the natural line where the entry begins.
    pub line: usize,
    pub name: String,
    pub value: String,
}

/// The entries in their order, or the first thing that is wrong. A name that stands twice is given twice: the later one counts.
pub fn parse_properties(text: &str) -> Result<Vec<(String, String)>, PropertiesError> {
    properties_entries(text)
        .map(|entry| entry.map(|entry| (entry.name, entry.value)))
        .collect()
}

/// The entries in their order, each with what is wrong with it.
pub fn properties_entries(
    text: &str,
) -> impl Iterator<Item = Result<PropertiesEntry, PropertiesError>> {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        loop {
            let (index, first) = lines.next()?;
            let mut logical = first.trim_start().to_owned();
            if logical.is_empty() || logical.starts_with(['#', '!']) {
                continue;
            }
            while ends_in_continuation(&logical) {
                logical.pop();
                match lines.next() {
                    Some((_, next)) => logical.push_str(next.trim_start()),
                    None => break,
                }
            }
            return Some(parse_entry(index + 1, &logical));
        }
    })
}

fn parse_entry(line: usize, logical: &str) -> Result<PropertiesEntry, PropertiesError> {
    let (name, value) = split_entry(logical);
    let unescaped = |raw| unescape(raw).map_err(|reason| PropertiesError { line, reason });
    Ok(PropertiesEntry {
        line,
        name: unescaped(name)?,
        value: unescaped(value)?.trim_end().to_owned(),
    })
}

fn ends_in_continuation(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    backslashes % 2 == 1
}

/// The name ends at the first `=`, `:` or white space that is not escaped; one `=` or `:` amid white space is dropped.
fn split_entry(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line
        .char_indices()
        .find(|&(_, character)| {
            let ends = !escaped && (matches!(character, '=' | ':') || character.is_whitespace());
            escaped = !escaped && character == '\\';
            ends
        })
        .map_or(line.len(), |(position, _)| position);
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    (
        name,
        rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start(),
    )
}

fn unescape(raw: &str) -> Result<String, String> {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| {
                    digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && digits.len() == 4
                });
                text.push(
                    code.and_then(char::from_u32)
                        .ok_or_else(|| format!("\\u{digits} is no character"))?,
                );
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse_properties(text).unwrap()
    }

    fn entry(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.into(), value.into())]
    }

    #[test]
    fn the_three_separators_are_equals_colon_and_white_space() {
        for text in [
            "a.b=c d",
            "a.b = c d",
            "a.b:c d",
            "a.b : c d",
            "a.b c d",
            "  a.b\t=\tc d  ",
            "a.b=c d\r\n",
        ] {
            assert_eq!(parsed(text), entry("a.b", "c d"), "{text:?}");
        }
        assert_eq!(parsed("a==b"), entry("a", "=b"));
        assert_eq!(parsed("a"), entry("a", ""));
        assert_eq!(
            parsed("listeners=PLAINTEXT://h:1"),
            entry("listeners", "PLAINTEXT://h:1")
        );
    }

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        assert_eq!(parsed("# x=1\n\n  ! y=2\n \t\nz=3\n"), entry("z", "3"));
        assert_eq!(
            parsed("a=b # not a comment"),
            entry("a", "b # not a comment")
        );
    }

    #[test]
    fn a_trailing_backslash_goes_on_in_the_next_line() {
        assert_eq!(parsed("a=b,\\\n   c,\\\r\n\td"), entry("a", "b,c,d"));
        assert_eq!(
            parsed("a=b\\\\\nc=d").len(),
            2,
            "two backslashes are one escaped backslash"
        );
        assert_eq!(parsed("a=b\\"), entry("a", "b"));
        assert_eq!(
            parsed("a=b\\\n# still the value"),
            entry("a", "b# still the value")
        );
    }

    #[test]
    fn escapes_are_javas() {
        assert_eq!(parsed("a\\=b=c\\:\\u0041\\tz\\q"), entry("a=b", "c:A\tzq"));
        assert_eq!(parsed("a\\ b c"), entry("a b", "c"));
    }

    #[test]
    fn a_bad_escape_names_its_line() {
        for bad in ["\\u12", "\\u00zz", "\\ud800", "\\u+041"] {
            let error = parse_properties(&format!("# one\na=b\nc={bad}")).unwrap_err();
            assert_eq!(error.line, 3, "{bad}");
        }
    }
}
