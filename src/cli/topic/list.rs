use serde::Serialize;

use crate::client::cluster::Topics;
use crate::client::metadata::TopicMetadata;

use super::super::exit::{CliError, Outcome};
use super::super::table::{Align, Table};
use super::super::{print, to_json};
use super::ListArguments;

/// A topic, as `corelog topic list --json` prints it.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    id: String,
    internal: bool,
    partitions: usize,
    /// The most copies that a partition has.
    replication: usize,
}

impl Listed {
    fn of(topic: &TopicMetadata) -> Self {
        Self {
            name: topic.name.clone(),
            id: topic.id.to_string(),
            internal: topic.is_internal,
            partitions: topic.partitions.len(),
            replication: topic.replication(),
        }
    }
}

pub(super) fn run(arguments: &ListArguments) -> Result<Outcome, CliError> {
    let metadata = arguments.cluster.connect()?.metadata(Topics::All)?;
    let listed: Vec<Listed> = metadata
        .topics
        .iter()
        .filter(|topic| arguments.internal || !topic.is_internal)
        .map(Listed::of)
        .collect();
    print(&if arguments.json {
        to_json(&listed)
    } else {
        table(&listed).to_string()
    })?;
    Ok(Outcome::Done)
}

fn table(listed: &[Listed]) -> Table {
    let mut table = Table::new(&[
        ("TOPIC", Align::Left),
        ("PARTITIONS", Align::Right),
        ("REPLICATION", Align::Right),
    ]);
    for topic in listed {
        table.push([
            topic.name.clone(),
            topic.partitions.to_string(),
            topic.replication.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_listed_one_a_line_under_aligned_titles() {
        let listed = |name: &str, partitions| Listed {
            name: name.to_owned(),
            id: String::new(),
            internal: false,
            partitions,
            replication: 1,
        };
        let expected = "\
TOPIC             PARTITIONS  REPLICATION
a                          3            1
orders.customers        1000            1";
        let table = table(&[listed("a", 3), listed("orders.customers", 1000)]);
        assert_eq!(table.to_string(), expected);
    }
}
