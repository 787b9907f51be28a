//! The rules of the architecture: each a function from a source file to violations, and tested with planted ones.

use std::fmt;

use super::scanner::{Token, root_modules, tokens};

/// Which modules stand on which layer. A module imports itself and strictly lower layers.
const LAYERS: &[(u8, &[&str])] = &[
    (9, &["cli"]),
    (8, &["broker"]),
    (7, &["server", "admin"]),
    (6, &["api"]),
    (5, &["shard"]),
    (4, &["replication", "group", "controller"]),
    (3, &["partition", "peer", "client"]),
    (2, &["storage", "protocol", "metadata"]),
    (1, &["io", "record", "metrics", "config"]),
    (0, &["model"]),
];

/// What the load generator may import: what a client of another company would have.
const PERF_IMPORTS: &[&str] = &["model", "record", "protocol", "client"];

/// Where `unsafe` may stand, each with what it is for.
pub const UNSAFE_PLACES: &[(&str, &str)] = &[
    (
        "src/io/",
        "raw file descriptors, io_uring and aligned memory",
    ),
    (
        "perf/src/baseline/ring.rs",
        "raw io_uring submissions and the aligned memory they need",
    ),
];

/// From here on a file is read twice: is it still one noun?
pub const FILE_LINES_MAX: usize = 600;

/// The files that may be longer, each with its own bound and the reason.
pub const LONGER_FILES: &[(&str, usize, &str)] = &[];

/// Names that say nothing, and so collect everything.
const CATCH_ALL_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "manager", "managers", "types", "common", "misc",
];

/// What a folder's `mod.rs` tells before any code.
const MOD_DOC_PARTS: &[&str] = &["Owns", "Must never know", "Runs on", "After a crash"];

#[derive(Debug)]
pub struct Violation {
    path: String,
    line: usize,
    reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.reason)
    }
}

/// A source file by its path from the repository's root.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn violation(&self, line: usize, reason: impl Into<String>) -> Violation {
        Violation {
            path: self.path.to_owned(),
            line,
            reason: reason.into(),
        }
    }

    /// The modules that the file stands in: `src/io/disk.rs` is in io, disk; `src/io/mod.rs` in io; `src/lib.rs` in none.
    fn modules(&self) -> Option<Vec<&str>> {
        let path = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        let mut modules: Vec<&str> = path.split('/').collect();
        if matches!(modules.last(), Some(&("mod" | "lib" | "main"))) {
            modules.pop();
        }
        Some(modules)
    }
}

fn layer_of(module: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(_, modules)| modules.contains(&module))
        .map(|&(layer, _)| layer)
}

/// Folders whose files and directories are those of `io::fs`.
const FILES_THROUGH_IO: [&str; 7] = [
    "src/api/",
    "src/broker",
    "src/controller/",
    "src/group/",
    "src/partition/",
    "src/shard/",
    "src/storage/",
];

/// Files that hold nothing but tests.
const FILES_OF_TESTS: [&str; 2] = ["/tests.rs", "/fault_sweep.rs"];

pub fn check(source: Source<'_>) -> Vec<Violation> {
    let rules = [
        layers,
        main_only_calls_cli,
        perf_imports,
        glommio_only_in_io,
        files_through_io,
        unsafe_only_where_named,
        file_length,
        mod_doc,
        catch_all_names,
        unfinished_code,
    ];
    rules.iter().flat_map(|rule| rule(source)).collect()
}

fn layers(source: Source<'_>) -> Vec<Violation> {
    let Some(modules) = source.modules() else {
        return Vec::new();
    };
    // lib.rs and main.rs declare; they have no layer.
    let Some(&own) = modules.first() else {
        return Vec::new();
    };
    let Some(own_layer) = layer_of(own) else {
        return vec![source.violation(
            1,
            format!("{own} stands in no layer: give it a place in LAYERS first"),
        )];
    };
    let mut violations = Vec::new();
    for import in root_modules(&tokens(source.text), "crate", Some(modules.len())) {
        let name = import.name.as_str();
        if name == own {
            continue;
        }
        match layer_of(name) {
            Some(layer) if layer < own_layer => {}
            Some(layer) => violations.push(source.violation(
                import.line,
                format!(
                    "{own} (layer {own_layer}) imports {name} (layer {layer}): only strictly lower layers may be \
                     imported; return a value upwards, or move what both need down"
                ),
            )),
            None => violations.push(source.violation(
                import.line,
                format!("{own} imports crate::{name}, which is in no layer: name the module that it lives in"),
            )),
        }
    }
    violations
}

fn main_only_calls_cli(source: Source<'_>) -> Vec<Violation> {
    if source.path != "src/main.rs" {
        return Vec::new();
    }
    root_modules(&tokens(source.text), "corelog", None)
        .into_iter()
        .filter(|import| import.name != "cli")
        .map(|import| {
            source.violation(
                import.line,
                format!("main.rs only calls cli, not {}", import.name),
            )
        })
        .collect()
}

fn perf_imports(source: Source<'_>) -> Vec<Violation> {
    if !source.path.starts_with("perf/") {
        return Vec::new();
    }
    root_modules(&tokens(source.text), "corelog", None)
        .into_iter()
        .filter(|import| !PERF_IMPORTS.contains(&import.name.as_str()))
        .map(|import| {
            let name = import.name;
            source.violation(
                import.line,
                format!("perf imports corelog::{name}: it measures from outside, so it has only {PERF_IMPORTS:?}"),
            )
        })
        .collect()
}

fn glommio_only_in_io(source: Source<'_>) -> Vec<Violation> {
    if source.path.starts_with("src/io/") || source.path.starts_with("tests/") {
        return Vec::new();
    }
    lines_with(source, "glommio")
        .map(|line| {
            source.violation(
                line,
                "glommio is named outside src/io: everything above must run without it",
            )
        })
        .collect()
}

/// What the product does with files goes through `io::fs`. Tests beside the code may look at files by themselves.
fn files_through_io(source: Source<'_>) -> Vec<Violation> {
    let is_above_io = FILES_THROUGH_IO
        .iter()
        .any(|place| source.path.starts_with(place));
    let is_of_tests = FILES_OF_TESTS
        .iter()
        .any(|name| source.path.ends_with(name));
    if !is_above_io || is_of_tests {
        return Vec::new();
    }
    let product = match source.text.find("mod tests {") {
        Some(end) => &source.text[..end],
        None => source.text,
    };
    let idents: Vec<_> = tokens(product)
        .into_iter()
        .filter_map(|placed| match placed.token {
            Token::Ident(word) => Some((word, placed.line)),
            _ => None,
        })
        .collect();
    idents
        .windows(2)
        .filter(|pair| ["std", "unix"].contains(&pair[0].0) && pair[1].0 == "fs")
        .map(|pair| {
            source.violation(
                pair[1].1,
                "std::fs is named outside src/io: files and directories go through io::fs",
            )
        })
        .collect()
}

fn unsafe_only_where_named(source: Source<'_>) -> Vec<Violation> {
    if UNSAFE_PLACES
        .iter()
        .any(|(place, _)| source.path.starts_with(place))
        || source.path.starts_with("tests/")
    {
        return Vec::new();
    }
    lines_with(source, "unsafe")
        .map(|line| {
            source.violation(
                line,
                "unsafe stands outside the places that UNSAFE_PLACES names",
            )
        })
        .collect()
}

fn file_length(source: Source<'_>) -> Vec<Violation> {
    let lines = source.text.lines().count();
    let exception = LONGER_FILES.iter().find(|(path, ..)| *path == source.path);
    let lines_max = exception.map_or(FILE_LINES_MAX, |&(_, lines_max, _)| lines_max);
    if lines <= lines_max {
        return Vec::new();
    }
    let reason = format!(
        "{lines} lines, more than {lines_max}: is it still one noun? Else split it by noun"
    );
    vec![source.violation(lines, reason)]
}

fn mod_doc(source: Source<'_>) -> Vec<Violation> {
    if !source.path.ends_with("/mod.rs") || source.path.starts_with("tests/") {
        return Vec::new();
    }
    let doc: Vec<&str> = source
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .collect();
    if doc.is_empty() {
        return vec![
            source.violation(1, "mod.rs does not open with //!: say what the folder owns"),
        ];
    }
    let doc = doc.join(" ");
    // A folder that is a module of a layer says all four; a folder inside one says what it is.
    let is_layer = source.modules().is_some_and(|modules| modules.len() == 1);
    let missing: Vec<&str> = MOD_DOC_PARTS
        .iter()
        .copied()
        .filter(|part| !doc.to_lowercase().contains(&part.to_lowercase()))
        .collect();
    if is_layer && !missing.is_empty() {
        return vec![source.violation(
            1,
            format!(
                "the //! of this folder does not say: {}",
                missing.join(", ")
            ),
        )];
    }
    Vec::new()
}

fn catch_all_names(source: Source<'_>) -> Vec<Violation> {
    let path = source.path.strip_suffix(".rs").unwrap_or(source.path);
    path.split('/')
        .filter(|name| CATCH_ALL_NAMES.contains(name))
        .map(|name| {
            source.violation(
                1,
                format!("{name} says nothing and so collects everything: name the noun"),
            )
        })
        .collect()
}

fn unfinished_code(source: Source<'_>) -> Vec<Violation> {
    // Put together here, so that this file does not accuse itself.
    let marks = [
        ["TO", "DO"],
        ["FIX", "ME"],
        ["todo", "!("],
        ["unimplemented", "!("],
        ["allow(dead", "_code"],
    ];
    let mut violations = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for mark in marks.map(|parts| parts.concat()) {
            if line.contains(&mark) {
                violations.push(
                    source.violation(index + 1, format!("{mark}: finish it or leave it out")),
                );
            }
        }
    }
    violations
}

fn lines_with<'a>(source: Source<'a>, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    tokens(source.text)
        .into_iter()
        .filter(move |placed| placed.token == Token::Ident(word))
        .map(|placed| placed.line)
}

#[cfg(test)]
mod planted {
    use super::*;

    fn reasons(path: &str, text: &str) -> Vec<String> {
        check(Source { path, text })
            .iter()
            .map(Violation::to_string)
            .collect()
    }

    fn assert_found(path: &str, text: &str, expected: &str) {
        let found = reasons(path, text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "planted {expected:?}, found {found:?}"
        );
    }

    #[test]
    fn an_import_of_a_higher_or_equal_layer_is_found() {
        assert_found(
            "src/storage/log.rs",
            "\nuse crate::{model, shard::Router};",
            "log.rs:2: storage (layer 2) imports shard",
        );
        assert_found(
            "src/io/disk.rs",
            "fn f() { crate::config::x() }",
            "imports config (layer 1)",
        );
        assert_found(
            "src/io/disk.rs",
            "use super::super::record;",
            "imports record (layer 1)",
        );
        assert_found(
            "src/broker.rs",
            "use super::cli;",
            "broker (layer 8) imports cli",
        );
        assert_found("src/api/fetch.rs", "use crate::*;", "imports crate::*");
        assert_found("src/extra.rs", "", "stands in no layer");
        assert!(
            reasons(
                "src/api/fetch.rs",
                "use crate::{model::Offset, shard, api::x}; use super::y;"
            )
            .is_empty()
        );
    }

    #[test]
    fn a_wrong_import_in_main_or_perf_is_found() {
        assert_found(
            "src/main.rs",
            "fn main() { corelog::broker::start() }",
            "main.rs only calls cli",
        );
        assert!(reasons("src/main.rs", "fn main() { corelog::cli::main() }").is_empty());
        assert_found(
            "perf/src/run.rs",
            "use corelog::{record, storage::Log};",
            "perf imports corelog::storage",
        );
        let fine = "use corelog::protocol::x; use super::super::y; use super::z;";
        assert!(reasons("perf/src/run.rs", fine).is_empty());
    }

    #[test]
    fn glommio_and_unsafe_outside_their_places_are_found() {
        assert_found(
            "src/shard/tick.rs",
            "use glommio::timer::sleep;",
            "glommio is named outside src/io",
        );
        assert_found(
            "src/shard/tick.rs",
            "fn f() { unsafe { g() } }",
            "unsafe stands outside",
        );
        assert!(
            reasons(
                "src/io/disk.rs",
                "use glommio::x; fn f() { unsafe { g() } }"
            )
            .is_empty()
        );
        assert!(
            reasons(
                "src/shard/tick.rs",
                "// glommio is unsafe\nconst A: &str = \"unsafe glommio\";"
            )
            .is_empty()
        );
    }

    #[test]
    fn files_that_pass_by_io_are_found() {
        let expected = "std::fs is named outside src/io";
        for text in [
            "use std::fs;",
            "use std::os::unix::fs::FileExt;",
            "use std::{fs, io};",
            "fn f() { std::fs::remove_file(p); }",
        ] {
            assert_found("src/storage/scan.rs", text, expected);
            assert_found("src/broker.rs", text, expected);
        }
        for (path, text) in [
            ("src/storage/scan.rs", "use crate::io::fs;"),
            ("src/storage/scan.rs", "mod tests { use std::fs; }"),
            ("src/cli/log_dump.rs", "use std::fs;"),
        ] {
            assert!(reasons(path, text).is_empty(), "{path}: {text}");
        }
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(reasons("src/api/fetch.rs", &"//\n".repeat(FILE_LINES_MAX)).is_empty());
        assert_found(
            "src/api/fetch.rs",
            &"//\n".repeat(FILE_LINES_MAX + 1),
            "601 lines",
        );
    }

    #[test]
    fn a_folder_that_does_not_say_what_it_owns_is_found() {
        assert_found(
            "src/storage/recovery/mod.rs",
            "mod x;",
            "does not open with //!",
        );
        let doc = "//! Owns: x. Must never know: y.\n//! Runs on: z.\n";
        assert_found("src/storage/mod.rs", doc, "does not say: After a crash");
        assert!(
            reasons(
                "src/storage/mod.rs",
                &format!("{doc}//! After a crash: w.\n")
            )
            .is_empty()
        );
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_found("src/storage/utils.rs", "", "utils says nothing");
        assert_found("src/api/helpers/fetch.rs", "", "helpers says nothing");
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_found(
            "src/api/fetch.rs",
            &["// TO", "DO later"].concat(),
            "finish it or leave it out",
        );
        assert_found(
            "src/api/fetch.rs",
            &["fn f() { todo", "!() }"].concat(),
            "finish it or leave it out",
        );
    }
}
