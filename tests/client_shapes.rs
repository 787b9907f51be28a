//! The client's table of response shapes against the message schemas of Apache Kafka.
//!
//! `scripts/test` unpacks them and sets `CORELOG_KAFKA_SCHEMAS`.

#[path = "support/message_schemas.rs"]
mod message_schemas;

use corelog::client::response_shapes::SPOKEN;

use message_schemas::{lines_of_schema, lines_of_shape, schema, versions_of};

#[test]
fn response_shapes_are_those_of_kafkas_message_schemas() {
    for api in SPOKEN {
        let schema = schema(&format!("{:?}Response", api.key));
        assert_eq!(schema["apiKey"], api.key as i16);
        let valid = versions_of(&schema["validVersions"]).expect("a response has versions");
        assert!(
            valid.0 <= api.min && api.max <= valid.1,
            "{:?}: Kafka has {valid:?}",
            api.key
        );
        assert_eq!(
            versions_of(&schema["flexibleVersions"]).map_or(i16::MAX, |(since, _)| since),
            api.flexible_since,
            "{:?}",
            api.key
        );
        for version in api.min..=api.max {
            let ours: Vec<String> = lines_of_shape(api.fields, version, "");
            let theirs: Vec<String> = lines_of_schema(&schema["fields"], &schema, version, "");
            assert_eq!(ours, theirs, "{:?} version {version}", api.key);
        }
    }
}

#[test]
fn every_spoken_version_is_one_that_the_codec_reaches() {
    for api in SPOKEN {
        let reach = api.key.valid_versions();
        assert!(
            reach.min <= api.min && api.max <= reach.max,
            "{:?} {} to {}, the codec has {reach}",
            api.key,
            api.min,
            api.max
        );
    }
}
