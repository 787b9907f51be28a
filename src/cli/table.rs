use std::fmt;

use unicode_width::UnicodeWidthStr;

const BETWEEN_COLUMNS: &str = "  ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Lines for people: columns as wide as their widest cell.
#[derive(Clone, Debug)]
pub(super) struct Table {
    columns: Vec<Align>,
    /// The titles first.
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            columns: columns.iter().map(|&(_, align)| align).collect(),
            rows: vec![columns.iter().map(|&(title, _)| title.to_owned()).collect()],
        }
    }

    /// Adds a line, a cell for each column.
    pub(super) fn push<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "a cell for each column");
        self.rows
            .push(cells.iter().map(|cell| printable(cell)).collect());
    }
}

/// Names come from other people's clients; what would move a terminal's cursor is shown in place of being done.
pub(super) fn printable(text: &str) -> String {
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width_of = |column: usize| {
            let widths = self.rows.iter().map(|row| row[column].width());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width_of).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, align), width) in row.iter().zip(&self.columns).zip(&widths) {
                let padding = " ".repeat(width - cell.width());
                match align {
                    Align::Left => line.extend([cell.as_str(), &padding]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
                line.push_str(BETWEEN_COLUMNS);
            }
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_a_terminal_shows() {
        let mut table = Table::new(&[("NAME", Align::Left), ("LAG", Align::Right)]);
        table.push(["日本".to_owned(), "1".to_owned()]);
        table.push(["orders".to_owned(), "12345".to_owned()]);
        let expected = "\
NAME      LAG
日本        1
orders  12345";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn what_moves_the_cursor_is_shown_and_not_done() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable("grün"), "grün");
    }
}
