use std::collections::BTreeSet;

use crate::model::TopicName;

/// The topics that a `consumer`'s metadata names: version i16, count i32, of each a string (Kafka's ConsumerProtocolSubscription;
/// what follows differs between versions and is the assignor's). `None` where it is something else.
pub fn subscribed_topics(metadata: &[u8]) -> Option<BTreeSet<TopicName>> {
    let (version, rest) = metadata.split_first_chunk()?;
    if i16::from_be_bytes(*version) < 0 {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk()?;
    let mut topics = BTreeSet::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (length, from) = rest.split_first_chunk()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let name = std::str::from_utf8(from.get(..length)?).ok()?;
        // A name that no topic can have is nobody's subscription.
        if let Ok(name) = TopicName::new(name) {
            topics.insert(name);
        }
        rest = &from[length..];
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(metadata: &[u8]) -> Option<Vec<String>> {
        let topics = subscribed_topics(metadata)?;
        Some(topics.iter().map(TopicName::to_string).collect())
    }

    #[test]
    fn the_topics_of_every_version_are_found() {
        for version in 0..=3 {
            let metadata = [
                &[0, version][..],
                b"\0\0\0\x02\0\x02t2\0\x02t1\xff\xff\xff\xffmore",
            ]
            .concat();
            assert_eq!(names(&metadata), Some(vec!["t1".into(), "t2".into()]));
        }
        assert_eq!(names(b"\0\0\0\0\0\0"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_subscription_has_no_topics() {
        for other in [
            &b""[..],
            b"\0",
            b"\0\x01\0\0",
            b"\0\x01\x7f\xff\xff\xff\0\x01t",
            b"\0\x01\0\0\0\x01\x7f\xfft",
            b"\0\x01\0\0\0\x01\xff\xfft",
            b"\xff\xff\0\0\0\0",
        ] {
            assert_eq!(names(other), None, "{other:?}");
        }
    }
}
