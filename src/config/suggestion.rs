/// The name that was most likely meant: the nearest one, if it is near enough that saying it helps.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A setting's name has at most a few dozen bytes; a longer input is not worth the quadratic comparison.
    const INPUT_BYTES_MAX: usize = 100;
    if wrong.len() > INPUT_BYTES_MAX {
        return None;
    }
    let (distance, name) = names
        .map(|name| (edit_distance(wrong.as_bytes(), name.as_bytes()), name))
        .min()?;
    (distance <= name.len() / 3).then_some(name)
}

/// How many bytes must be inserted, removed or replaced to turn `a` into `b` (Levenshtein), in one row of memory.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, byte_a) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, byte_b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(byte_a != byte_b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_single_byte_changes() {
        assert_eq!(edit_distance(b"kitten", b"sitting"), 3);
        assert_eq!(edit_distance(b"", b"abc"), 3);
        assert_eq!(edit_distance(b"abc", b""), 3);
        assert_eq!(edit_distance(b"same", b"same"), 0);
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let names = ["retention.ms", "segment.bytes"];
        assert_eq!(
            nearest("retention.m", names.into_iter()),
            Some("retention.ms")
        );
        assert_eq!(
            nearest("retentoin.ms", names.into_iter()),
            Some("retention.ms")
        );
        assert_eq!(nearest("compression", names.into_iter()), None);
        assert_eq!(nearest(&"r".repeat(1000), names.into_iter()), None);
    }
}
