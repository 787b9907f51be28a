use std::collections::HashMap;
use std::sync::Arc;

use crate::model::TopicId;
use crate::model::limits::FOLLOW_METADATA_MS;

/// What became of a stored change at those who host partitions, which is what its client is to be told.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    unopened: HashMap<TopicId, (usize, Arc<str>)>,
    is_late: bool,
}

/// Why a stored change is not in effect everywhere. It will be without any more doing of the client's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    #[error(
        "it is stored, but {partition_count} of its partitions could not be opened; the broker tries again by itself: {why}"
    )]
    Unopened {
        partition_count: usize,
        why: Arc<str>,
    },
    #[error("it is stored, but not every core has followed it within {FOLLOW_METADATA_MS} ms")]
    Late,
}

impl Followed {
    /// One new partition of a topic could not be opened.
    pub fn note_unopened(&mut self, topic: TopicId, why: Arc<str>) {
        let (partition_count, _) = self.unopened.entry(topic).or_insert((0, why));
        *partition_count += 1;
    }

    /// Somebody has not said yet what became of it.
    pub fn note_late(&mut self) {
        self.is_late = true;
    }

    /// Whether the change of this topic is in effect.
    pub fn check(&self, topic: TopicId) -> Result<(), NotFollowed> {
        if let Some((partition_count, why)) = self.unopened.get(&topic) {
            return Err(NotFollowed::Unopened {
                partition_count: *partition_count,
                why: why.clone(),
            });
        }
        if self.is_late {
            Err(NotFollowed::Late)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_with_partitions_that_are_not_open_is_not_in_effect_and_the_others_are() {
        let topic = |number| TopicId(uuid::Uuid::from_u128(number));
        let mut followed = Followed::default();
        for why in ["first", "second"] {
            followed.note_unopened(topic(1), why.into());
        }
        let unopened = NotFollowed::Unopened {
            partition_count: 2,
            why: "first".into(),
        };
        assert_eq!(followed.check(topic(1)), Err(unopened.clone()));
        assert_eq!(followed.check(topic(2)), Ok(()));
        followed.note_late();
        assert_eq!(followed.check(topic(1)), Err(unopened));
        assert_eq!(followed.check(topic(2)), Err(NotFollowed::Late));
    }
}
