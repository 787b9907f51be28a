//! The page stands alone and says what the text says.

use super::sized;

const LOAD: [&str; 4] = ["--ingest", "1GB/s", "--disk-space", "20TB"];

#[test]
fn a_page_is_one_file_for_phones_and_for_the_night() {
    for arguments in [&LOAD[..], &["--walkthrough"]] {
        let page = sized(arguments).unwrap().html();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("width=device-width"));
        assert_eq!(page.matches("<svg").count(), 1);
        for outside in ["http://", "https://", "<script", "<link", "src="] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(outside), "the page needs {outside}");
        }
    }
}

#[test]
fn the_chart_has_a_line_and_a_legend_for_each_curve() {
    let page = sized(&LOAD).unwrap().html();
    assert_eq!(page.matches("class=\"key\"").count(), 5);
    assert!(page.matches("<polyline").count() >= 5);
}

#[test]
fn the_page_says_how_many_brokers() {
    assert!(
        sized(&LOAD)
            .unwrap()
            .html()
            .contains("131 brokers for 1 GB/s")
    );
}
