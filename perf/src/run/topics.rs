//! The run's topics: made before the load, deleted after it, and where this run's records lie in each.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Run;
use crate::client::cluster::{Cluster, Topic};
use crate::client::coordinator::delete_groups;
use crate::client::error::ClientError;
use crate::plan::LoadPlan;
use crate::producer::ledger::Ledger;

/// How long a broker that is away at a run's end may take to come back; without it nothing could be audited.
const COME_BACK_TIMEOUT: Duration = Duration::from_secs(60);

const COME_BACK_POLL: Duration = Duration::from_millis(500);

/// What this run put into one topic.
pub struct Stretch {
    pub topic: Arc<Topic>,
    /// Of each partition: this run's records lie from the start on, before the end.
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    /// Of the producers that sent to this topic.
    pub ledgers: Vec<Ledger>,
}

impl Stretch {
    pub fn ranges(&self) -> Vec<(i64, i64)> {
        self.starts
            .iter()
            .copied()
            .zip(self.ends.iter().copied())
            .collect()
    }

    pub fn offsets_advanced(&self) -> i64 {
        self.ranges().iter().map(|(start, end)| end - start).sum()
    }
}

/// One topic bears the name itself, several bear it with a number.
pub fn names(name: &str, topics: u32) -> Vec<String> {
    match topics {
        1 => vec![name.to_owned()],
        _ => (0..topics).map(|topic| format!("{name}-{topic}")).collect(),
    }
}

/// The topics with their leaders, and the names of those that were not there before.
pub fn create(
    cluster: &Cluster,
    names: &[String],
    plan: &LoadPlan,
) -> Result<(Vec<Arc<Topic>>, Vec<String>), ClientError> {
    let mut created = Vec::new();
    for name in names {
        if cluster.create_topic(
            name,
            plan.partitions,
            plan.replication,
            &plan.topic_settings,
        )? {
            created.push(name.clone());
        }
    }
    let topics = names
        .iter()
        .map(|name| cluster.await_topic(name, plan.partitions).map(Arc::new))
        .collect::<Result<_, _>>()?;
    Ok((topics, created))
}

/// Topics that others made, as they are.
pub fn existing(cluster: &Cluster, names: &[String]) -> Result<Vec<Arc<Topic>>, ClientError> {
    names
        .iter()
        .map(|name| cluster.existing_topic(name).map(Arc::new))
        .collect()
}

impl Run<'_> {
    pub(super) fn end_offsets(&self) -> Result<Vec<Vec<i64>>, ClientError> {
        self.topics
            .iter()
            .map(|topic| self.cluster.end_offsets(topic))
            .collect()
    }

    /// The same, once the broker is there again: one that was killed in the load may need a while.
    pub(super) fn await_end_offsets(&mut self) -> Result<Vec<Vec<i64>>, ClientError> {
        let deadline = Instant::now() + COME_BACK_TIMEOUT;
        let mut is_told = false;
        loop {
            match self.end_offsets() {
                Err(
                    ClientError::Connect { .. }
                    | ClientError::Io { .. }
                    | ClientError::Closed { .. },
                ) if Instant::now() < deadline && !self.interrupt.is_asked() => {
                    if !is_told {
                        self.progress.phase("waiting for the broker", None);
                        is_told = true;
                    }
                    sleep(COME_BACK_POLL);
                }
                ends => return ends,
            }
        }
    }

    /// Of all steps. They say nothing to anybody once the load is over.
    pub(super) fn delete_groups(&mut self) {
        let groups: Vec<String> = std::mem::take(&mut self.groups).into_iter().collect();
        if groups.is_empty() {
            return;
        }
        if let Err(error) = delete_groups(self.cluster.bootstrap(), &groups) {
            self.progress.note(&format!(
                "the groups {} could not be deleted: {error}",
                groups.join(", ")
            ));
        }
    }

    pub(super) fn delete_topics(&mut self, names: &[String]) {
        for name in names {
            if let Err(error) = self.cluster.delete_topic(name) {
                self.progress
                    .note(&format!("the topic {name} could not be deleted: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_topics_are_numbered_and_one_is_not() {
        assert_eq!(names("t", 1), ["t"]);
        assert_eq!(names("t", 3), ["t-0", "t-1", "t-2"]);
    }
}
