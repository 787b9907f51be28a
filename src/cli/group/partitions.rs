use std::str::FromStr;

use crate::client::cluster::Cluster;
use crate::client::metadata::TopicPartition;

use super::super::exit::CliError;

/// `TOPIC`, or `TOPIC:0,1,...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionChoice {
    topic: String,
    /// None: all.
    partitions: Option<Vec<i32>>,
}

impl FromStr for PartitionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "not TOPIC or TOPIC:0,1,...".to_owned();
        let (topic, partitions) = match text.split_once(':') {
            None => (text, None),
            Some((topic, list)) => {
                let partitions: Option<Vec<i32>> = list
                    .split(',')
                    .map(|part| part.trim().parse().ok().filter(|&index| index >= 0))
                    .collect();
                (topic, Some(partitions.ok_or_else(wrong)?))
            }
        };
        match topic.is_empty() {
            true => Err(wrong()),
            false => Ok(Self {
                topic: topic.to_owned(),
                partitions,
            }),
        }
    }
}

impl PartitionChoice {
    /// The partitions of topics that exist, each once.
    pub(super) fn resolve(
        choices: &[Self],
        cluster: &mut Cluster,
    ) -> Result<Vec<TopicPartition>, CliError> {
        let mut chosen = Vec::new();
        for choice in choices {
            let topic = cluster.topic(&choice.topic)?;
            let there: Vec<TopicPartition> = topic.partition_indexes().collect();
            let Some(partitions) = &choice.partitions else {
                chosen.extend(there);
                continue;
            };
            for &index in partitions {
                let at = TopicPartition::new(&choice.topic, index);
                if !there.contains(&at) {
                    return Err(CliError::Input(format!(
                        "{} has {} partitions, so there is no partition {index}",
                        choice.topic,
                        there.len()
                    )));
                }
                chosen.push(at);
            }
        }
        chosen.sort();
        chosen.dedup();
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_topic_or_some_of_its_partitions() {
        let choice = |topic: &str, partitions: Option<Vec<i32>>| {
            Ok(PartitionChoice {
                topic: topic.to_owned(),
                partitions,
            })
        };
        assert_eq!("orders".parse(), choice("orders", None));
        assert_eq!("orders:2,0".parse(), choice("orders", Some(vec![2, 0])));
        for wrong in ["", ":1", "orders:", "orders:x", "orders:-1"] {
            assert!(wrong.parse::<PartitionChoice>().is_err(), "{wrong}");
        }
    }
}
