//! What the documents say can be followed: their links lead somewhere, and the reports they link to stay small.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a checkout carries of reports.
const RESULTS_BYTES_MAX: u64 = 4 * 1000 * 1000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What git keeps of `results/`; runs that somebody made and did not commit are nobody else's.
fn kept_results() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "results"])
        .current_dir(root())
        .output()
        .expect("git lists the files of this checkout");
    let listed = String::from_utf8(listed.stdout).expect("the names are text");
    listed.lines().map(str::to_owned).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    documents.push(root().join("results/README.md"));
    for folder in ["docs", "perf"] {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        documents.extend(
            entries
                .map(|entry| entry.expect("the folder reads").path())
                .filter(|path| path.extension().is_some_and(|it| it == "md")),
        );
    }
    documents
}

/// Where the `[text](target)` of a Markdown text lead, but for other sites and places in the same page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("the document reads");
        for target in links(&text) {
            let path = document.parent().expect("it is in a folder").join(target);
            assert!(path.exists(), "{}: {target}", document.display());
            count += 1;
        }
    }
    assert!(count > 20, "only {count} links were found");
}

#[test]
fn every_folder_of_results_is_explained_and_all_are_small() {
    let index = fs::read_to_string(root().join("results/README.md")).expect("it reads");
    let files = kept_results();
    assert!(!files.is_empty(), "git keeps no results");
    let mut bytes = 0;
    for file in files {
        if let Some((folder, _)) = file["results/".len()..].split_once('/') {
            assert!(
                index.contains(&format!("]({folder}/")),
                "results/README.md does not say what {folder} shows"
            );
        }
        // A file that was just removed is not committed yet.
        bytes += fs::metadata(root().join(file)).map_or(0, |it| it.len());
    }
    assert!(
        bytes < RESULTS_BYTES_MAX,
        "results/ has {bytes} bytes; see scripts/pack-results"
    );
}
