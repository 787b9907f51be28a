//! The frame of every page that is written: one HTML file that needs nothing else, by day and by night, on a phone too. No script,
//! no network, charts as SVG inside.
//!
//! Owns: the style, the frame, and the parts that several pages have. Must never know: what a page is about. Runs on: the main
//! thread, after everything was measured.

pub mod charts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");

/// A whole page; `body` comes below its heading.
pub fn page(heading: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "corelog-perf: " (heading) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (heading) }
                (body)
            }
        }
    };
    page.into_string()
}

/// One figure with its name, and below what there is to say about it.
pub fn row(name: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="row" {
            span { (name) }
            b { (value) }
            @if !note.is_empty() { small { (note) } }
        }
    }
}

/// What a reader must know before using the figures above.
pub fn remarks(remarks: &[String]) -> Markup {
    html! { @for remark in remarks { p class="remark" { (remark) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_file_for_phones_and_for_the_night() {
        let page = page("a", &html! { p { "b" } });
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
        for loads in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!page.contains(loads), "the page has {loads}");
        }
    }

    #[test]
    fn text_is_never_taken_for_markup() {
        let page = page("a < b", &row("c & d", "<i>", "<script>"));
        assert!(page.contains("<h1>a &lt; b</h1>") && page.contains("c &amp; d"));
        assert!(!page.contains("<i>") && !page.contains("<script>"));
    }
}
