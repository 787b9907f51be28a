//! Prometheus' text format, as far as plain samples go: `name{label="value",...} number`, one a line.

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    pub name: &'a str,
    /// What stands between the braces.
    labels: &'a str,
    pub value: f64,
}

impl Sample<'_> {
    /// Whether it has this label, with a value that needs no escapes.
    pub fn has_label(&self, name: &str, value: &str) -> bool {
        labels(self.labels).any(|label| label == (name, value))
    }
}

/// The samples of a page. Comments, and lines that are none, are left out.
pub fn samples(page: &str) -> impl Iterator<Item = Sample<'_>> {
    page.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => {
            let end = closing_brace(rest)?;
            (&rest[..end], &rest[end + 1..])
        }
        None => ("", rest),
    };
    // A timestamp may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then_some(Sample {
        name,
        labels,
        value,
    })
}

/// A brace within quotes does not close.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// Names and values as they are written. A value ends at the first quote that no backslash precedes.
fn labels(mut text: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, rest) = text.split_once("=\"")?;
        let mut escaped = false;
        let end = rest.find(|c: char| match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' => {
                escaped = true;
                false
            }
            c => c == '"',
        })?;
        text = rest[end + 1..].trim_start_matches([',', ' ']);
        Some((name.trim(), &rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP a Words {of} help 1\n\
        # TYPE a counter\n\
        a 1\n\
        a{shard=\"0\"} 2.5 1700000000000\n\
        \n\
        b{path=\"C:\\\\x}\\\"\",name=\"n\",} 3e2\n\
        c{unclosed=\"} 4\n\
        d NaN\n\
        e words\n";

    #[test]
    fn samples_are_read_with_labels_exponents_and_timestamps_and_all_else_is_left_out() {
        let read: Vec<_> = samples(PAGE).collect();
        let values: Vec<_> = read.iter().map(|it| (it.name, it.value)).collect();
        assert_eq!(values[..3], [("a", 1.0), ("a", 2.5), ("b", 300.0)]);
        assert!(values[3].0 == "d" && values[3].1.is_nan());
        assert_eq!(values.len(), 4);
    }

    #[test]
    fn a_label_is_found_behind_one_with_braces_and_quotes() {
        let with_labels = samples(PAGE)
            .find(|it| it.name == "b")
            .expect("it is there");
        assert!(with_labels.has_label("name", "n"));
        assert!(!with_labels.has_label("name", "x"));
        assert!(!with_labels.has_label("path", "n"));
    }
}
