//! The table of request shapes against two oracles: the codec, and the message schemas of Apache Kafka.
//!
//! The schemas are `common/message/*.json` of the jar `kafka-clients`; `scripts/test` unpacks them and sets `CORELOG_KAFKA_SCHEMAS`.

#[path = "support/request_bytes.rs"]
mod request_bytes;

use std::path::PathBuf;

use bytes::Bytes;
use corelog::model::limits::REQUEST_ELEMENTS_MAX;
use corelog::protocol::request_shapes::{Field, Kind, REQUEST_SHAPES};
use corelog::protocol::shape::{ShapeError, walk};
use corelog::protocol::versions::SERVED;
use kafka_protocol::messages::ApiKey;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

const ROUNDS: usize = 40;

#[test]
fn every_served_api_has_one_shape() {
    let served: Vec<ApiKey> = SERVED.iter().map(|api| api.key).collect();
    let shaped: Vec<ApiKey> = REQUEST_SHAPES.iter().map(|shape| shape.key).collect();
    assert_eq!(served, shaped);
    for shape in REQUEST_SHAPES {
        for version in 0..20 {
            let is_flexible = shape.key.request_header_version(version) >= 2;
            assert_eq!(
                version >= shape.flexible_since,
                is_flexible,
                "{:?} version {version}",
                shape.key
            );
        }
    }
}

#[test]
fn what_the_table_writes_the_codec_reads_and_writes_back_the_same() {
    let (mut rng, seed) = seeded();
    for (shape, version) in request_bytes::served_requests() {
        for round in 0..ROUNDS {
            let context = format!(
                "{:?} version {version}, round {round}, seed {seed}",
                shape.key
            );
            let body = request_bytes::random_body(shape, version, &mut rng);
            assert_eq!(walk(shape.key, version, &body), Ok(()), "{context}");
            let recoded = request_bytes::recode(shape.key, version, &body);
            assert_eq!(recoded, Ok((Bytes::from(body), 0)), "{context}");
        }
    }
}

#[test]
fn a_body_that_is_cut_is_refused_and_bytes_behind_it_are_let_through() {
    let (mut rng, seed) = seeded();
    for (shape, version) in request_bytes::served_requests() {
        let mut body = request_bytes::random_body(shape, version, &mut rng);
        for cut in 0..body.len() {
            let walked = walk(shape.key, version, &body[..cut]);
            assert!(
                walked.is_err(),
                "{:?} version {version} cut at {cut}, seed {seed}",
                shape.key
            );
        }
        body.push(0);
        assert_eq!(
            walk(shape.key, version, &body),
            Ok(()),
            "{:?} version {version}, seed {seed}",
            shape.key
        );
    }
}

/// The codec would ask for `count` elements of memory: had a lie come through, this test would end with an aborted process.
#[test]
fn a_count_that_lies_never_reaches_the_codec() {
    let (mut rng, seed) = seeded();
    let peak_kib = virtual_peak_kib();
    for (shape, version) in request_bytes::served_requests() {
        for _ in 0..ROUNDS {
            let mut body = request_bytes::random_body(shape, version, &mut rng);
            for _ in 0..rng.random_range(1..4) {
                lie(&mut body, &mut rng);
            }
            if walk(shape.key, version, &body).is_ok() {
                let _ = request_bytes::recode(shape.key, version, &body);
            }
        }
    }
    let grown_kib = virtual_peak_kib() - peak_kib;
    // A thread's first allocation reserves 64 MiB of addresses, and the other tests run on threads beside this one.
    assert!(
        grown_kib < 1024 * 1024,
        "the address space grew by {grown_kib} KiB, seed {seed}"
    );
}

/// Overwrites a few bytes with what a huge count looks like in one encoding or the other.
fn lie(body: &mut [u8], rng: &mut StdRng) {
    let lies: [&[u8]; 4] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x00, 0x10, 0x00, 0x00],
        &[0x7f, 0xff],
    ];
    let lie = lies[rng.random_range(0..lies.len())];
    if body.len() >= lie.len() {
        let at = rng.random_range(0..=body.len() - lie.len());
        body[at..at + lie.len()].copy_from_slice(lie);
    }
}

#[test]
fn the_twenty_three_bytes_that_abort_the_codec_are_refused() {
    let topics = [0x7f, 0xff, 0xff, 0xff];
    let refused = ShapeError::Count {
        field: "Topics",
        count: i32::MAX as usize,
        remaining_bytes: 0,
    };
    assert_eq!(walk(ApiKey::Metadata, 1, &topics), Err(refused));
    let flexible = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert!(matches!(
        walk(ApiKey::Metadata, 9, &flexible),
        Err(ShapeError::Count {
            field: "Topics",
            ..
        })
    ));
}

#[test]
fn elements_are_bounded_even_where_the_bytes_are_there() {
    let body = |count: usize| {
        let mut body = (count as i32).to_be_bytes().to_vec();
        body.resize(body.len() + 2 * count, 0);
        body
    };
    assert_eq!(
        walk(ApiKey::Metadata, 0, &body(REQUEST_ELEMENTS_MAX)),
        Ok(())
    );
    assert_eq!(
        walk(ApiKey::Metadata, 0, &body(REQUEST_ELEMENTS_MAX + 1)),
        Err(ShapeError::TooManyElements)
    );
}

#[test]
fn null_is_refused_where_the_version_has_no_null() {
    let null_array = [0xff; 4];
    assert_eq!(
        walk(ApiKey::Metadata, 0, &null_array),
        Err(ShapeError::Null { field: "Topics" })
    );
    assert_eq!(walk(ApiKey::Metadata, 1, &null_array), Ok(()));
    let below_null = (-2i32).to_be_bytes();
    assert_eq!(
        walk(ApiKey::Metadata, 1, &below_null),
        Err(ShapeError::Length {
            field: "Topics",
            length: -2
        })
    );
}

#[test]
fn a_tagged_field_has_the_size_that_it_declares() {
    // No topics, three flags that are false, and in the tags of Fetch 12 a cluster id "ab" in 3 bytes.
    let mut body = vec![0xff, 0xff, 0xff, 0xff];
    body.extend([0; 12]);
    body.push(0);
    body.extend([0; 8]);
    body.extend([1, 1, 1]);
    let tags_at = body.len();
    body.extend([1, 0, 3, 3, b'a', b'b']);
    assert_eq!(walk(ApiKey::Fetch, 12, &body), Ok(()));
    body[tags_at + 2] = 2;
    assert_eq!(
        walk(ApiKey::Fetch, 12, &body),
        Err(ShapeError::CutShort { field: "ClusterId" })
    );
    body[tags_at + 3] = 2;
    body[tags_at + 2] = 3;
    assert_eq!(
        walk(ApiKey::Fetch, 12, &body),
        Err(ShapeError::TagSize { field: "ClusterId" })
    );
}

#[test]
fn shapes_are_those_of_kafkas_message_schemas() {
    for (api, shape) in SERVED.iter().zip(REQUEST_SHAPES) {
        let schema = schema(&format!("{:?}Request", shape.key));
        assert_eq!(schema["apiKey"], shape.key as i16);
        let valid = versions_of(&schema["validVersions"]).expect("a request has versions");
        assert!(
            valid.0 <= api.min && api.max <= valid.1,
            "{:?}: Kafka has {valid:?}",
            api
        );
        assert_eq!(
            versions_of(&schema["flexibleVersions"]).map_or(i16::MAX, |(since, _)| since),
            shape.flexible_since
        );
        for version in api.min..=api.max {
            let ours: Vec<String> = lines_of_shape(shape.fields, version, "");
            let theirs: Vec<String> = lines_of_schema(&schema["fields"], &schema, version, "");
            assert_eq!(ours, theirs, "{:?} version {version}", shape.key);
        }
    }
}

#[test]
fn response_headers_are_flexible_where_kafkas_are() {
    for api in SERVED {
        let schema = schema(&format!("{:?}Response", api.key));
        let flexible = versions_of(&schema["flexibleVersions"]);
        for version in api.min..=api.max {
            let is_flexible =
                flexible.is_some_and(|(since, until)| since <= version && version <= until);
            let has_tags = is_flexible && api.key != ApiKey::ApiVersions;
            assert_eq!(
                api.key.response_header_version(version),
                i16::from(has_tags),
                "{:?} version {version}",
                api.key
            );
        }
    }
}

/// The fields of a version, one a line: path, type, null, tag.
fn lines_of_shape(fields: &[Field], version: i16, path: &str) -> Vec<String> {
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
        Kind::Array(_) | Kind::Struct(_) => unreachable!("no request has arrays of arrays"),
    }
}

fn lines_of_schema(fields: &Value, schema: &Value, version: i16, path: &str) -> Vec<String> {
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
fn versions_of(versions: &Value) -> Option<(i16, i16)> {
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

fn schema(message: &str) -> Value {
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

fn virtual_peak_kib() -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("Linux tells a process its own status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmPeak:"))
        .expect("the status has VmPeak");
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("VmPeak is a number of KiB")
}

/// From `CORELOG_SEED`, else random; printed, and shown when a test fails.
fn seeded() -> (StdRng, u64) {
    let seed = std::env::var("CORELOG_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("CORELOG_SEED={seed}");
    (StdRng::seed_from_u64(seed), seed)
}
