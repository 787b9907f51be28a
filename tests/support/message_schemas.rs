//! Kafka's message schemas, `common/message/*.json` of the jar `kafka-clients`, and our tables of shapes, as lines that can be compared.

use std::path::PathBuf;

use corelog::protocol::request_shapes::{Field, Kind};
use serde_json::Value;

/// The fields of a version, one a line: path, type, null, tag.
pub fn lines_of_shape(fields: &[Field], version: i16, path: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for field in fields.iter().filter(|field| field.is_in(version)) {
        let path = format!("{path}/{}", field.name);
        let (kind, inner): (String, &[Field]) = match field.kind {
            Kind::Struct(inner) => ("struct".into(), inner),
            Kind::Array(&Kind::Struct(inner)) => ("[]struct".into(), inner),
            Kind::Array(element) => (format!("[]{}", name_of(element)), &[]),
            kind => (name_of(&kind).into(), &[]),
        };
        lines.push(line(
            &path,
            &kind,
            field.is_nullable_in(version),
            field.tag.map(u64::from),
        ));
        lines.extend(lines_of_shape(inner, version, &path));
    }
    lines
}

fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Fixed { name, .. } => name,
        Kind::String => "string",
        Kind::Records => "records",
        Kind::Bytes => "bytes",
        Kind::Array(_) | Kind::Struct(_) => unreachable!("no message has arrays of arrays"),
    }
}

pub fn lines_of_schema(fields: &Value, schema: &Value, version: i16, path: &str) -> Vec<String> {
    let contains = |versions: &Value| {
        versions_of(versions).is_some_and(|(since, until)| since <= version && version <= until)
    };
    let mut lines = Vec::new();
    for field in fields
        .as_array()
        .expect("fields are a list")
        .iter()
        .filter(|field| contains(&field["versions"]))
    {
        let path = format!(
            "{path}/{}",
            field["name"].as_str().expect("a field has a name")
        );
        let kind = field["type"].as_str().expect("a field has a type");
        let (prefix, element) = match kind.strip_prefix("[]") {
            Some(element) => ("[]", element),
            None => ("", kind),
        };
        let is_struct = element.starts_with(char::is_uppercase);
        let shown = format!("{prefix}{}", if is_struct { "struct" } else { element });
        let tag = field["tag"]
            .as_u64()
            .filter(|_| contains(&field["taggedVersions"]));
        lines.push(line(
            &path,
            &shown,
            contains(&field["nullableVersions"]),
            tag,
        ));
        if is_struct {
            let named = || {
                schema["commonStructs"]
                    .as_array()?
                    .iter()
                    .find(|common| common["name"] == element)
            };
            let inner = field
                .get("fields")
                .or_else(|| named()?.get("fields"))
                .expect("a struct has fields");
            lines.extend(lines_of_schema(inner, schema, version, &path));
        }
    }
    lines
}

fn line(path: &str, kind: &str, is_nullable: bool, tag: Option<u64>) -> String {
    let tag = tag.map_or(String::new(), |tag| format!(" tag {tag}"));
    format!(
        "{path} {kind}{}{tag}",
        if is_nullable { " nullable" } else { "" }
    )
}

/// `"3+"`, `"3-5"`, `"3"`; `"none"` and a missing one are no version.
pub fn versions_of(versions: &Value) -> Option<(i16, i16)> {
    let text = versions.as_str().filter(|&text| text != "none")?;
    let number = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| panic!("{text:?} is no version"))
    };
    Some(match (text.strip_suffix('+'), text.split_once('-')) {
        (Some(since), _) => (number(since), i16::MAX),
        (None, Some((since, until))) => (number(since), number(until)),
        (None, None) => (number(text), number(text)),
    })
}

pub fn schema(message: &str) -> Value {
    let directory = std::env::var_os("CORELOG_KAFKA_SCHEMAS")
        .expect("CORELOG_KAFKA_SCHEMAS names no directory with Kafka's message schemas; scripts/test sets it");
    let path = PathBuf::from(directory).join(format!("{message}.json"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let without_comments: Vec<_> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    serde_json::from_str(&without_comments.join("\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
