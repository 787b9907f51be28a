//! Text in so many columns: tables that are no wider than the terminal, and long lines that continue on the next one.
//!
//! Owns: how wide the terminal is, and the layout of tables. Must never know: what is shown. Runs on: the main thread.

use std::fmt::{self, Display, Formatter};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use terminal_size::{Width, terminal_size_of};

/// Of a file, and of whatever tells no width.
const OF_A_FILE: u16 = 80;

/// A narrower terminal breaks the lines itself.
const MIN: u16 = 40;

/// What a column of prose is never narrower than, whatever stands beside it.
const PROSE_MIN: usize = 16;

/// The same of a range: one of its two figures, or both without what stands before them.
const RANGE_MIN: usize = 12;

const GAP: usize = 2;

/// How wide a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u16);

/// What stands in a column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// To the left, on one line.
    Name,
    /// To the right, on one line.
    Figure,
    /// To the left, on as many lines as it takes.
    Prose,
    /// To the right, on as many lines as it takes.
    Range,
}

impl Columns {
    pub const OF_A_FILE: Self = Self(OF_A_FILE);

    /// So wide that nothing is broken.
    #[cfg(test)]
    pub const WIDE: Self = Self(10_000);

    /// Of the terminal that shows stdout, and of a file where it is none.
    pub fn of_stdout() -> Self {
        match terminal_size_of(std::io::stdout()) {
            Some((Width(width), _)) if width > 0 => Self(width.max(MIN)),
            _ => Self::OF_A_FILE,
        }
    }

    /// Rows of cells; missing cells are empty.
    pub fn table(
        self,
        columns: &[Column],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> TableLines {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let width_of = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut table = Table::new();
        table
            .load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        let mut least = 0;
        for row in &rows {
            let missing = columns.len().saturating_sub(row.len());
            table.add_row(row.iter().cloned().chain(vec![String::new(); missing]));
        }
        for (number, (column, laid_out)) in columns.iter().zip(table.column_iter_mut()).enumerate()
        {
            let gap = if number == 0 { 0 } else { GAP };
            laid_out.set_padding((gap as u16, 0));
            if matches!(column, Column::Figure | Column::Range) {
                laid_out.set_cell_alignment(CellAlignment::Right);
            }
            least += gap
                + match column {
                    Column::Name | Column::Figure => {
                        laid_out.set_constraint(ColumnConstraint::ContentWidth);
                        width_of(number)
                    }
                    Column::Prose => width_of(number).min(PROSE_MIN),
                    Column::Range => width_of(number).min(RANGE_MIN),
                };
        }
        let least = u16::try_from(least).unwrap_or(u16::MAX);
        table.set_width(self.0.max(least));
        TableLines(table)
    }

    /// The same text, lines that are longer continued a little to the right.
    pub fn fit(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            let begin = line.len() - line.trim_start().len();
            let indent = format!("{}  ", &line[..begin]);
            let options = textwrap::Options::new(usize::from(self.0))
                .subsequent_indent(&indent)
                .break_words(false)
                .word_splitter(textwrap::WordSplitter::NoHyphenation);
            match line.chars().count() > usize::from(self.0) {
                true => out.push_str(&textwrap::fill(line, options)),
                false => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// The lines of a table, each with its end.
pub struct TableLines(Table);

impl Display for TableLines {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0
            .lines()
            .try_for_each(|line| writeln!(out, "{}", line.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn a_table_is_no_wider_than_its_columns_and_only_prose_takes_more_lines() {
        let rows = || {
            [
                (
                    "  throughput",
                    "76.6 MB/s",
                    "0.085 x null broker, same requests, one after the other (901 MB/s)",
                ),
                ("  broker CPU", "4.08 s/GB", ""),
            ]
            .map(|(name, figure, prose)| vec![name.to_owned(), figure.to_owned(), prose.to_owned()])
        };
        let columns = [Column::Name, Column::Figure, Column::Prose];
        let text = Columns(60).table(&columns, rows()).to_string();
        assert!(widest(&text) <= 60, "{text}");
        assert!(
            text.starts_with("  throughput  76.6 MB/s  0.085 x"),
            "{text}"
        );
        assert!(text.ends_with("\n  broker CPU  4.08 s/GB\n"), "{text}");
        let text = Columns(200).table(&columns, rows()).to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
        // Too narrow for what stays on one line: prose still has words on its lines.
        let text = Columns(20).table(&columns, rows()).to_string();
        assert!(text.contains("0.085 x null\n"), "{text}");
    }

    #[test]
    fn a_long_line_continues_below_its_begin_and_no_word_is_broken() {
        let text =
            Columns(20).fit("  a line that is long, and --a-flag-of-one-word-alone\nshort\n");
        assert_eq!(
            text,
            "  a line that is\n    long, and\n    --a-flag-of-one-word-alone\nshort\n"
        );
    }
}
