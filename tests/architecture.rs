//! The architecture as a test: `architecture/rules.rs` holds the table of layers and the rules that no compiler knows;
//! here they are applied to the repository, and the documents are held to what exists.

#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/scanner.rs"]
mod scanner;

use std::fs;
use std::path::Path;

use rules::{FILE_LINES_MAX, LONGER_FILES, Source, UNSAFE_PLACES, Violation, check};

/// The way of a write: the files a newcomer reads, in this order.
const READING_ORDER: [&str; 7] = [
    "src/server/connection.rs",
    "src/api/produce.rs",
    "src/shard/router.rs",
    "src/partition/leader.rs",
    "src/storage/log.rs",
    "src/storage/appender.rs",
    "src/io/disk/log_file.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the product and its tests, by its path from the root.
fn rust_files() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        let entries =
            fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|entry| {
            entry
                .expect("a folder of the repository can be read")
                .path()
        }) {
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(
                    path.strip_prefix(root())
                        .expect("it was found below")
                        .display()
                        .to_string(),
                );
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["src", "perf/src", "tests"] {
        walk(&root().join(folder), &mut found);
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn assert_none(violations: &[Violation]) {
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(
        list.is_empty(),
        "{} violations of the architecture:\n{}",
        list.len(),
        list.join("\n")
    );
}

#[test]
fn every_file_keeps_the_rules() {
    let mut violations = Vec::new();
    for path in rust_files() {
        violations.extend(check(Source {
            path: &path,
            text: &read(&path),
        }));
    }
    assert_none(&violations);
}

#[test]
fn every_exception_is_still_needed() {
    for (path, lines_max, reason) in LONGER_FILES {
        let lines = read(path).lines().count();
        assert!(
            lines > FILE_LINES_MAX,
            "{path} ({reason}) has {lines} lines and needs no exception of {lines_max}"
        );
    }
    for (place, reason) in UNSAFE_PLACES {
        assert!(
            root().join(place).exists(),
            "{place} may hold unsafe ({reason}) and does not exist"
        );
    }
}

/// The paths between backticks that start at one of the repository's folders.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let folders = [
        "src/", "perf/", "tests/", "scripts/", "results/", "fuzz/", "docs/", ".ci/",
    ];
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let path = quoted.split(' ').next().unwrap_or_default();
            if folders.iter().any(|folder| path.starts_with(folder)) {
                found.push((index + 1, path.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_path_that_the_map_and_the_readme_name_exists() {
    let mut violations = Vec::new();
    for document in ["ARCHITECTURE.md", "README.md"] {
        let text = read(document);
        for (line, path) in named_paths(&text) {
            if !root().join(&path).exists() {
                let source = Source {
                    path: document,
                    text: &text,
                };
                violations.push(source.violation(line, format!("{path} does not exist")));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn the_map_gives_the_reading_order_and_stays_a_map() {
    let map = read("ARCHITECTURE.md");
    let mut from = 0;
    for path in READING_ORDER {
        let at = map[from..].find(path);
        from += at.unwrap_or_else(|| {
            panic!("ARCHITECTURE.md: {path} is missing from the reading order, or misplaced")
        });
    }
    assert!(
        map.lines().count() < 200,
        "ARCHITECTURE.md is a map, not a book: fewer than 200 lines"
    );
    let folders = fs::read_dir(root().join("src")).expect("src can be read");
    for path in folders
        .map(|entry| entry.expect("src can be read").path())
        .filter(|path| path.is_dir())
    {
        let folder = path.strip_prefix(root()).expect("it was found below");
        let name = format!("`{}/`", folder.display());
        assert!(
            map.contains(&name),
            "ARCHITECTURE.md: the code map does not tell what {name} is"
        );
    }
}

#[test]
fn only_paths_of_the_repository_are_checked_in_documents() {
    let text =
        "`src/io/disk.rs` and `scripts/test --all`\nnot `target/x`, `broker.rack` or src/plain";
    assert_eq!(
        named_paths(text),
        [
            (1, "src/io/disk.rs".to_owned()),
            (1, "scripts/test".to_owned())
        ]
    );
}
