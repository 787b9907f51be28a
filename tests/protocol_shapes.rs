//! The table of request shapes against two oracles: the codec, and the message schemas of Apache Kafka.
//!
//! The schemas are `common/message/*.json` of the jar `kafka-clients`; `scripts/test` unpacks them and sets `CORELOG_KAFKA_SCHEMAS`.

#[path = "support/message_schemas.rs"]
mod message_schemas;
#[path = "support/request_bytes.rs"]
mod request_bytes;

use bytes::Bytes;
use corelog::model::limits::REQUEST_ELEMENTS_MAX;
use corelog::protocol::request_shapes::REQUEST_SHAPES;
use corelog::protocol::shape::{ShapeError, walk};
use corelog::protocol::versions::SERVED;
use kafka_protocol::messages::ApiKey;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use message_schemas::{lines_of_schema, lines_of_shape, schema, versions_of};

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
fn tags_of_a_struct_ascend() {
    // ApiVersions 3: two compact strings, and then tagged fields of two bytes each.
    let body = |tags: &[u8]| {
        let mut body = vec![2, b'a', 2, b'b', tags.len() as u8];
        for tag in tags {
            body.extend([*tag, 2, 7, 7]);
        }
        body
    };
    for ascending in [&[][..], &[0], &[0, 1], &[3, 100]] {
        let body = body(ascending);
        assert_eq!(walk(ApiKey::ApiVersions, 3, &body), Ok(()), "{ascending:?}");
    }
    for (tags, before) in [(&[1, 0][..], 1), (&[5, 5], 5), (&[1, 9, 2], 9)] {
        let tag = u32::from(*tags.last().unwrap());
        assert_eq!(
            walk(ApiKey::ApiVersions, 3, &body(tags)),
            Err(ShapeError::TagOrder { tag, before }),
            "{tags:?}"
        );
    }
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
