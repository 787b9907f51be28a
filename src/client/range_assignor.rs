//! Kafka's range assignor: of each topic's partitions every subscribed member gets a run, the first members one more where it does not
//! come out even.

use std::collections::BTreeMap;

use super::metadata::TopicPartition;

/// A member of the group with the topics that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    pub member_id: String,
    /// A static member keeps its place by this name over restarts.
    pub instance_id: Option<String>,
    pub topics: Vec<String>,
}

/// Each member with its partitions, in the order of their topics; members that get none included.
pub fn assign(
    subscribers: &[Subscriber],
    partition_counts: &BTreeMap<String, i32>,
) -> BTreeMap<String, Vec<TopicPartition>> {
    let mut assigned: BTreeMap<String, Vec<TopicPartition>> = subscribers
        .iter()
        .map(|subscriber| (subscriber.member_id.clone(), Vec::new()))
        .collect();
    for (topic, &count) in partition_counts {
        let mut members: Vec<&Subscriber> = subscribers
            .iter()
            .filter(|subscriber| subscriber.topics.contains(topic))
            .collect();
        // Static members first, each kind by its name, as Kafka's assignor orders them.
        members.sort_by_key(|member| {
            let name = member.instance_id.as_ref().unwrap_or(&member.member_id);
            (member.instance_id.is_none(), name.clone())
        });
        let member_count = members.len() as i32;
        let mut next = 0;
        for (place, member) in (0..).zip(members) {
            let share = count / member_count + i32::from(place < count % member_count);
            let partitions = assigned
                .get_mut(&member.member_id)
                .expect("every subscriber has an entry");
            partitions.extend((next..next + share).map(|index| TopicPartition::new(topic, index)));
            next += share;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscriber(member_id: &str, instance_id: Option<&str>, topics: &[&str]) -> Subscriber {
        Subscriber {
            member_id: member_id.to_owned(),
            instance_id: instance_id.map(str::to_owned),
            topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
        }
    }

    fn shown(subscribers: &[Subscriber], counts: &[(&str, i32)]) -> BTreeMap<String, String> {
        let counts = counts
            .iter()
            .map(|&(topic, count)| (topic.to_owned(), count))
            .collect();
        let text = |partitions: Vec<TopicPartition>| {
            let partitions: Vec<String> =
                partitions.iter().map(TopicPartition::to_string).collect();
            partitions.join(" ")
        };
        assign(subscribers, &counts)
            .into_iter()
            .map(|(member, partitions)| (member, text(partitions)))
            .collect()
    }

    #[test]
    fn the_first_members_get_one_more_where_it_does_not_come_out_even() {
        let subscribers = [
            subscriber("b", None, &["t", "u"]),
            subscriber("a", None, &["t", "u"]),
        ];
        let found = shown(&subscribers, &[("t", 3), ("u", 1)]);
        assert_eq!(found["a"], "t-0 t-1 u-0");
        assert_eq!(found["b"], "t-2");
    }

    #[test]
    fn only_subscribers_share_a_topic_and_static_members_come_first() {
        let subscribers = [
            subscriber("a", None, &["t"]),
            subscriber("z", Some("1"), &["t", "u"]),
            subscriber("c", None, &[]),
        ];
        let found = shown(&subscribers, &[("t", 2), ("u", 1), ("nobody", 4)]);
        assert_eq!(found["z"], "t-0 u-0");
        assert_eq!(found["a"], "t-1");
        assert_eq!(found["c"], "");
    }
}
