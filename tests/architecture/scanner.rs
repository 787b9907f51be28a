//! A small scanner of Rust source: tokens without comments and strings, and which modules a file names.
//!
//! It knows just enough to find paths that start at a crate's root: `crate::a::b`, `use crate::{a, b::{c, d}}`,
//! `super::super::a` from inside nested modules, and `corelog::a` from another package.

/// An identifier, a path separator, a brace or any other single character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Ident(&'a str),
    PathSeparator,
    Other(char),
}

#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    pub token: Token<'a>,
    pub line: usize,
}

/// A module at the root of a crate that a file names, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct RootModule {
    pub name: String,
    pub line: usize,
}

/// Cuts `source` into tokens; comments, strings, characters, lifetimes and spaces are left out.
pub fn tokens(source: &str) -> Vec<Placed<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let first = rest.chars().next().expect("`at` stands before the end");
        let length = if let Some(length) = skipped(rest) {
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = word_length(rest);
            tokens.push(Placed {
                token: Token::Ident(&rest[..length]),
                line,
            });
            length
        } else if first.is_ascii_digit() {
            word_length(rest)
        } else if rest.starts_with("::") {
            tokens.push(Placed {
                token: Token::PathSeparator,
                line,
            });
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Placed {
                    token: Token::Other(first),
                    line,
                });
            }
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    tokens
}

/// The length of what stands at the start of `rest` and is no code: a comment, a string, a character or a lifetime.
fn skipped(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_length(rest));
    }
    let prefix = rest
        .bytes()
        .take_while(|byte| b"bcr".contains(byte))
        .count();
    if prefix <= 2 {
        let raw = rest[..prefix].contains('r');
        let quoted = &rest[prefix..];
        let hashes = if raw {
            quoted.bytes().take_while(|&byte| byte == b'#').count()
        } else {
            0
        };
        if quoted[hashes..].starts_with('"') {
            let body = &quoted[hashes + 1..];
            let body_length = if raw {
                raw_string_length(body, hashes)
            } else {
                string_length(body, '"')
            };
            return Some(prefix + hashes + 1 + body_length);
        }
        if quoted.starts_with('\'') && (prefix == 0 || &rest[..prefix] == "b") {
            return Some(prefix + quote_length(quoted));
        }
    }
    None
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// From behind the opening quote to behind the closing one.
fn string_length(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in body.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    body.len()
}

fn raw_string_length(body: &str, hashes: usize) -> usize {
    let end = format!("\"{}", "#".repeat(hashes));
    body.find(&end).map_or(body.len(), |at| at + end.len())
}

/// `'a'`, `'\n'` and `'\''` are characters; `'a` is a lifetime, of which only the quote is skipped.
fn quote_length(quoted: &str) -> usize {
    let mut letters = quoted[1..].chars();
    match (letters.next(), letters.next()) {
        (Some('\\'), _) => 1 + string_length(&quoted[1..], '\''),
        (Some(letter), Some('\'')) => 2 + letter.len_utf8(),
        _ => 1,
    }
}

fn word_length(rest: &str) -> usize {
    rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(rest.len())
}

/// The root modules that a file names by `root_word::` (`crate`, or the package's name from another package), or by as many
/// `super::` as lead to the root. `depth` is how many modules deep the file itself is: 0 for `lib.rs`, 1 for `io/mod.rs`; `None` where
/// the root in question is another package's, which no `super::` reaches.
pub fn root_modules(
    tokens: &[Placed<'_>],
    root_word: &str,
    depth: Option<usize>,
) -> Vec<RootModule> {
    let mut found = Vec::new();
    // For each open brace, whether it opened a module.
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::Other('{') => {
                let opens_module = at >= 2 && tokens[at - 2].token == Token::Ident("mod");
                braces.push(opens_module);
            }
            Token::Other('}') => {
                braces.pop();
            }
            Token::Ident(word)
                if word == root_word && follows_separator(tokens, at) && !is_inner(tokens, at) =>
            {
                collect_heads(tokens, at + 2, &mut found);
            }
            Token::Ident("super") if follows_separator(tokens, at) && !is_inner(tokens, at) => {
                let mut supers = 1;
                while tokens
                    .get(at + 2 * supers)
                    .is_some_and(|next| next.token == Token::Ident("super"))
                    && follows_separator(tokens, at + 2 * supers)
                {
                    supers += 1;
                }
                let nested = braces.iter().filter(|&&is_module| is_module).count();
                if depth.is_some_and(|depth| supers >= depth + nested) {
                    collect_heads(tokens, at + 2 * supers, &mut found);
                }
                at += 2 * supers - 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn follows_separator(tokens: &[Placed<'_>], at: usize) -> bool {
    tokens
        .get(at + 1)
        .is_some_and(|next| next.token == Token::PathSeparator)
}

/// Whether the word at `at` is not the start of its path.
fn is_inner(tokens: &[Placed<'_>], at: usize) -> bool {
    at > 0 && tokens[at - 1].token == Token::PathSeparator
}

/// The first word of each path of a use tree: `a::b` names a, `{a, b::{c, d}}` names a and b, `*` names `*`.
fn collect_heads(tokens: &[Placed<'_>], start: usize, found: &mut Vec<RootModule>) {
    let Some(first) = tokens.get(start) else {
        return;
    };
    match first.token {
        Token::Ident(name) => found.push(RootModule {
            name: name.to_owned(),
            line: first.line,
        }),
        Token::Other('*') => found.push(RootModule {
            name: "*".to_owned(),
            line: first.line,
        }),
        Token::Other('{') => {
            let mut depth = 0;
            for at in start..tokens.len() {
                match tokens[at].token {
                    Token::Other('{') => depth += 1,
                    Token::Other('}') => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    return;
                }
                let is_head = matches!(tokens[at].token, Token::Other('{' | ','));
                if depth == 1 && is_head {
                    collect_heads(tokens, at + 1, found);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str, depth: usize) -> Vec<(String, usize)> {
        root_modules(&tokens(source), "crate", Some(depth))
            .into_iter()
            .map(|found| (found.name, found.line))
            .collect()
    }

    fn named(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
        expected
            .iter()
            .map(|&(name, line)| (name.to_owned(), line))
            .collect()
    }

    #[test]
    fn paths_and_use_trees_name_their_first_word() {
        let source = "use crate::a::b;\nuse crate::{c::{x, y}, d, e as f,\n g::*};\nfn f() { crate::h::i(); $crate::j::k }";
        let expected = [
            ("a", 1),
            ("c", 2),
            ("d", 2),
            ("e", 2),
            ("g", 3),
            ("h", 4),
            ("j", 4),
        ];
        assert_eq!(names(source, 1), named(&expected));
        assert_eq!(
            names("pub(crate) struct A; pub(in crate::a) struct B;", 1),
            named(&[("a", 1)])
        );
    }

    #[test]
    fn comments_and_strings_name_nothing() {
        let source = r###"
            // crate::a::x
            /* crate::b /* nested crate::c */ crate::d */
            const A: &str = "crate::e \" crate::f";
            const B: &str = r#"crate::g " crate::h"#;
            const C: &[u8] = b"crate::i"; const D: char = '"'; const E: char = '\''; const F: u8 = b'"';
            fn lifetime<'a>(x: &'a str) -> &'a str { crate::found::y }
        "###;
        assert_eq!(names(source, 1), named(&[("found", 7)]));
    }

    #[test]
    fn super_is_followed_to_the_root_through_inline_modules() {
        assert_eq!(names("use super::sibling;", 2), named(&[]));
        assert_eq!(names("use super::other;", 1), named(&[("other", 1)]));
        assert_eq!(
            names("use super::super::{other, third::x};", 2),
            named(&[("other", 1), ("third", 1)])
        );
        assert_eq!(
            names("mod tests { use super::*; use super::super::sibling; }", 2),
            named(&[])
        );
        assert_eq!(
            names(
                "mod tests { use super::super::super::other; } use super::super::more;",
                2
            ),
            named(&[("other", 1), ("more", 1)])
        );
        assert_eq!(
            names("fn f() { if a { super::super::x() } }", 2),
            named(&[("x", 1)])
        );
    }
}
