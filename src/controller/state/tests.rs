use std::sync::mpsc;

use super::*;
use crate::config::{AlterOperation, Alteration};
use crate::controller::{ConfigResource, LayoutError, NewTopicLayout, Reply, SettingsChange};
use crate::model::internal_topic::OFFSETS_TOPIC;
use crate::model::{NodeId, PartitionIndex, TopicId};

struct TestController {
    directory: tempfile::TempDir,
    controller: Controller,
    config: BrokerConfig,
    /// What becomes of the next change at the shards.
    followed: Option<Followed>,
}

impl TestController {
    fn new() -> Self {
        Self::with_settings(&[])
    }

    fn with_settings(settings: &[(&str, &str)]) -> Self {
        let config = BrokerConfig::from_file_settings(settings.iter().copied().collect()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let controller = Controller::open(directory.path(), &config).unwrap();
        Self {
            directory,
            controller,
            config,
            followed: None,
        }
    }

    fn restart(self) -> Self {
        let Self {
            directory,
            controller,
            config,
            followed,
        } = self;
        drop(controller);
        let controller = Controller::open(directory.path(), &config).unwrap();
        Self {
            directory,
            controller,
            config,
            followed,
        }
    }

    /// Executes what `command` makes of a reply; gives the reply's value and the update.
    fn run<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(Reply<T>) -> ControllerCommand,
    ) -> (T, Option<MetadataUpdate>) {
        let (sender, receiver) = mpsc::channel();
        let execution = self
            .controller
            .execute(command(Box::new(move |value| sender.send(value).unwrap())));
        assert!(
            receiver.try_recv().is_err(),
            "nobody is told before the update was followed"
        );
        (execution.reply)(self.followed.take().unwrap_or_default());
        (receiver.recv().unwrap(), execution.update)
    }

    fn create(&mut self, topics: Vec<NewTopic>) -> Vec<Result<Arc<Topic>, CreateTopicError>> {
        self.run(|reply| ControllerCommand::CreateTopics {
            topics,
            validate_only: false,
            reply,
        })
        .0
    }

    fn alter(
        &mut self,
        changes: Vec<ConfigChange>,
    ) -> (Vec<Result<(), AlterConfigError>>, Option<MetadataUpdate>) {
        self.run(|reply| ControllerCommand::AlterConfigs {
            changes,
            validate_only: false,
            reply,
        })
    }

    fn delete(&mut self, topics: Vec<TopicSelector>) -> Vec<Result<Arc<Topic>, DeleteTopicError>> {
        self.run(|reply| ControllerCommand::DeleteTopics { topics, reply })
            .0
    }

    fn add_partitions(
        &mut self,
        topics: Vec<NewPartitions>,
    ) -> Vec<Result<(), CreatePartitionsError>> {
        self.run(|reply| ControllerCommand::CreatePartitions {
            topics,
            validate_only: false,
            reply,
        })
        .0
    }

    fn producer_id(&mut self) -> (i64, Option<MetadataUpdate>) {
        let (id, update) = self.run(|reply| ControllerCommand::AllocateProducerId { reply });
        (id.unwrap().0, update)
    }
}

fn topic(name: &str, partition_count: i32) -> NewTopic {
    let layout = NewTopicLayout::Counts {
        partition_count,
        replication_factor: -1,
    };
    NewTopic {
        name: name.into(),
        layout,
        settings: Vec::new(),
    }
}

fn with_setting(name: &str, value: Option<&str>) -> NewTopic {
    NewTopic {
        settings: vec![(name.into(), value.map(str::to_owned))],
        ..topic("t", 1)
    }
}

fn assigned(partitions: &[(i32, &[i32])]) -> NewTopic {
    let replicas = |nodes: &[i32]| nodes.iter().copied().map(NodeId).collect();
    let partitions = partitions
        .iter()
        .map(|(index, nodes)| (PartitionIndex(*index), replicas(nodes)));
    NewTopic {
        layout: NewTopicLayout::Assigned(partitions.collect()),
        ..topic("t", 1)
    }
}

fn set(resource: ConfigResource, name: &str, value: &str) -> ConfigChange {
    let alteration = Alteration {
        name: name.into(),
        operation: AlterOperation::Set,
        value: Some(value.into()),
    };
    ConfigChange {
        resource,
        settings: SettingsChange::Incremental(vec![alteration]),
    }
}

#[test]
fn a_created_topic_is_in_the_update_and_survives_a_restart() {
    let mut test = TestController::with_settings(&[("num.partitions", "3")]);
    let command = |reply| ControllerCommand::CreateTopics {
        topics: vec![topic("a", 2), topic("b", -1)],
        validate_only: false,
        reply,
    };
    let (results, update) = test.run(command);
    let update = update.unwrap();
    let ids: Vec<TopicId> = results
        .iter()
        .map(|result| result.as_ref().unwrap().id)
        .collect();
    assert_eq!(update.delta.topics.len(), 2);
    assert_eq!(
        update.image.topic("b").unwrap().partition_count(),
        3,
        "-1 is num.partitions"
    );
    let test = test.restart();
    let image = test.controller.image();
    assert_eq!(
        [image.topic("a").unwrap().id, image.topic("b").unwrap().id],
        ids[..]
    );
    assert_eq!(**image, *update.image);
}

#[test]
fn each_topic_of_a_request_stands_or_falls_alone() {
    let mut test = TestController::new();
    test.create(vec![topic("exists", 1)]);
    let results = test.create(vec![
        topic("exists", 1),
        topic("new", 1),
        topic("no/name", 1),
        topic("none", 0),
    ]);
    assert!(matches!(results[0], Err(CreateTopicError::Exists(_))));
    assert_eq!(results[1].as_ref().unwrap().name.as_str(), "new");
    assert!(matches!(results[2], Err(CreateTopicError::Name(_))));
    assert!(matches!(
        results[3],
        Err(CreateTopicError::Layout(LayoutError::PartitionCount))
    ));
}

#[test]
fn a_name_that_stands_twice_is_created_not_even_once() {
    let mut test = TestController::new();
    let results = test.create(vec![topic("t", 1), topic("u", 1), topic("t", 2)]);
    assert!(matches!(results[0], Err(CreateTopicError::Twice(_))));
    assert!(results[1].is_ok());
    assert!(matches!(results[2], Err(CreateTopicError::Twice(_))));
}

#[test]
fn asking_only_whether_it_would_work_changes_nothing() {
    let mut test = TestController::new();
    let command = |reply| ControllerCommand::CreateTopics {
        topics: vec![topic("t", 4)],
        validate_only: true,
        reply,
    };
    let (results, update) = test.run(command);
    assert_eq!(results[0].as_ref().unwrap().partition_count(), 4);
    assert!(update.is_none() && test.controller.image().topic("t").is_none());
}

#[test]
fn a_layout_that_cannot_be_is_refused() {
    let mut test = TestController::new();
    let mut refused = |new_topic: NewTopic| match test.create(vec![new_topic]).remove(0) {
        Err(CreateTopicError::Layout(error)) => error,
        other => panic!("{other:?}"),
    };
    let factor = |replication_factor| NewTopic {
        layout: NewTopicLayout::Counts {
            partition_count: 1,
            replication_factor,
        },
        ..topic("t", 1)
    };
    assert_eq!(
        refused(factor(3)),
        LayoutError::TooFewBrokers {
            wanted: 3,
            brokers: 1
        }
    );
    assert_eq!(refused(factor(0)), LayoutError::ReplicationFactor);
    assert_eq!(refused(topic("t", -2)), LayoutError::PartitionCount);
    assert_eq!(refused(topic("t", 100_001)), LayoutError::PartitionCount);
    assert_eq!(refused(assigned(&[])), LayoutError::PartitionCount);
    assert_eq!(
        refused(assigned(&[(0, &[1]), (2, &[1])])),
        LayoutError::AssignmentGap(1)
    );
    assert_eq!(
        refused(assigned(&[(0, &[1]), (0, &[1])])),
        LayoutError::AssignmentIndex(0)
    );
    assert_eq!(
        refused(assigned(&[(-1, &[1])])),
        LayoutError::AssignmentIndex(-1)
    );
    assert_eq!(
        refused(assigned(&[(0, &[2])])),
        LayoutError::UnknownBroker(NodeId(2))
    );
    assert_eq!(
        refused(assigned(&[(0, &[1, 1])])),
        LayoutError::BrokerTwice(NodeId(1))
    );
    assert_eq!(refused(assigned(&[(0, &[])])), LayoutError::NoBroker);
    assert_eq!(
        test.create(vec![assigned(&[(1, &[1]), (0, &[1])])])[0]
            .as_ref()
            .unwrap()
            .partition_count(),
        2
    );
}

#[test]
fn a_broker_has_a_bounded_number_of_partitions() {
    let mut test = TestController::new();
    let results = test.create(vec![
        topic("most", 99_999),
        topic("one", 1),
        topic("too-many", 1),
    ]);
    assert!(results[0].is_ok() && results[1].is_ok());
    assert!(matches!(
        results[2],
        Err(CreateTopicError::Layout(LayoutError::TooManyPartitions))
    ));
    let more = NewPartitions {
        name: "one".into(),
        total_count: 2,
        assignments: None,
    };
    let results = test.add_partitions(vec![more]);
    assert!(matches!(
        results[0],
        Err(CreatePartitionsError::Layout(
            LayoutError::TooManyPartitions
        ))
    ));
}

#[test]
fn a_topics_settings_are_checked_when_it_is_created() {
    let mut test = TestController::new();
    let results = test.create(vec![with_setting("retention.ms", Some("-2"))]);
    assert_eq!(
        results[0].as_ref().unwrap_err().to_string(),
        "retention.ms=-2: must be at least -1"
    );
    assert!(test.create(vec![with_setting("retention.ms", None)])[0].is_err());
    let created = test
        .create(vec![with_setting("retention.ms", Some("9"))])
        .remove(0)
        .unwrap();
    assert_eq!(created.overrides.get("retention.ms"), Some("9"));
}

#[test]
fn topics_are_deleted_by_name_and_by_id() {
    let mut test = TestController::new();
    let created = test.create(vec![topic("a", 1), topic("b", 1)]);
    let id = created[1].as_ref().unwrap().id;
    let unknown = TopicId(uuid::Uuid::from_u128(5));
    let results = test.delete(vec![
        TopicSelector::Name("a".into()),
        TopicSelector::Id(id),
        TopicSelector::Name("c".into()),
        TopicSelector::Id(unknown),
    ]);
    assert_eq!(results[1].as_ref().unwrap().name.as_str(), "b");
    assert!(matches!(results[2], Err(DeleteTopicError::UnknownName(_))));
    assert!(matches!(results[3], Err(DeleteTopicError::UnknownId(_))));
    assert_eq!(test.restart().controller.image().topic_count(), 0);
}

#[test]
fn a_topic_is_not_deleted_twice_in_a_request() {
    let mut test = TestController::new();
    let id = test.create(vec![topic("a", 1)])[0].as_ref().unwrap().id;
    let results = test.delete(vec![TopicSelector::Name("a".into()), TopicSelector::Id(id)]);
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(DeleteTopicError::Twice)))
    );
    assert!(test.controller.image().topic("a").is_some());
}

#[test]
fn deleting_topics_can_be_forbidden() {
    let mut test = TestController::with_settings(&[("delete.topic.enable", "false")]);
    test.create(vec![topic("a", 1)]);
    let results = test.delete(vec![TopicSelector::Name("a".into())]);
    assert!(matches!(results[0], Err(DeleteTopicError::Disabled)));
}

#[test]
fn partitions_are_only_ever_added() {
    let mut test = TestController::new();
    test.create(vec![topic("t", 2)]);
    let wanted = |name: &str, total_count| NewPartitions {
        name: name.into(),
        total_count,
        assignments: None,
    };
    for total_count in [2, 1, 0, -1] {
        let results = test.add_partitions(vec![wanted("t", total_count)]);
        assert!(matches!(
            results[0],
            Err(CreatePartitionsError::NoIncrease { current: 2, .. })
        ));
    }
    assert!(matches!(
        test.add_partitions(vec![wanted("u", 2)])[0],
        Err(CreatePartitionsError::UnknownTopic(_))
    ));
    let twice = test.add_partitions(vec![wanted("t", 3), wanted("t", 4)]);
    assert!(
        twice
            .iter()
            .all(|result| matches!(result, Err(CreatePartitionsError::Twice(_))))
    );
    let short = NewPartitions {
        assignments: Some(vec![vec![NodeId(1)]]),
        ..wanted("t", 4)
    };
    assert!(matches!(
        test.add_partitions(vec![short])[0],
        Err(CreatePartitionsError::Layout(
            LayoutError::AssignmentCount {
                wanted: 2,
                assigned: 1
            }
        ))
    ));
    assert!(test.add_partitions(vec![wanted("t", 5)])[0].is_ok());
    assert_eq!(
        test.restart()
            .controller
            .image()
            .topic("t")
            .unwrap()
            .partition_count(),
        5
    );
}

#[test]
fn a_topics_settings_change_online() {
    let mut test = TestController::new();
    test.create(vec![topic("t", 1)]);
    let (results, update) = test.alter(vec![
        set(ConfigResource::Topic("t".into()), "retention.ms", "5"),
        set(ConfigResource::Topic("u".into()), "retention.ms", "5"),
    ]);
    assert!(results[0].is_ok());
    assert!(matches!(results[1], Err(AlterConfigError::UnknownTopic(_))));
    assert_eq!(
        update.unwrap().delta.topics[0]
            .reconfigured()
            .unwrap()
            .overrides
            .get("retention.ms"),
        Some("5")
    );
    let (_, nothing) = test.alter(vec![set(
        ConfigResource::Topic("t".into()),
        "retention.ms",
        "5",
    )]);
    assert!(nothing.is_none(), "the same value again changes nothing");
    let replace = SettingsChange::ReplaceAll(vec![("segment.ms".into(), Some("6".into()))]);
    let change = ConfigChange {
        resource: ConfigResource::Topic("t".into()),
        settings: replace,
    };
    assert!(test.alter(vec![change]).0[0].is_ok());
    let image = test.restart().controller.image().clone();
    let overrides = &image.topic("t").unwrap().overrides;
    assert_eq!(
        (overrides.get("retention.ms"), overrides.get("segment.ms")),
        (None, Some("6"))
    );
}

#[test]
fn a_brokers_settings_change_online_and_come_back_after_a_restart() {
    let mut test = TestController::new();
    let (results, update) = test.alter(vec![
        set(ConfigResource::AllBrokers, "log.flush.interval.ms", "20"),
        set(ConfigResource::Broker(NodeId(1)), "log.retention.ms", "30"),
        set(ConfigResource::Broker(NodeId(2)), "log.retention.ms", "30"),
    ]);
    assert!(results[0].is_ok() && results[1].is_ok());
    assert!(matches!(
        results[2],
        Err(AlterConfigError::UnknownBroker(NodeId(2)))
    ));
    assert!(update.unwrap().delta.broker_settings_changed);
    let test = test.restart();
    let defaults = test.controller.config().topic_defaults;
    assert_eq!((defaults.flush_ms, defaults.retention_ms), (20, Some(30)));
}

#[test]
fn a_resource_stands_once_in_a_request() {
    let mut test = TestController::new();
    let change = set(ConfigResource::AllBrokers, "log.flush.interval.ms", "20");
    let (results, update) = test.alter(vec![change.clone(), change]);
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(AlterConfigError::Twice)))
    );
    assert!(update.is_none());
}

#[test]
fn a_producer_id_is_never_handed_out_twice() {
    let mut test = TestController::new();
    let first: Vec<i64> = (0..1500).map(|_| test.producer_id().0).collect();
    assert_eq!(first, (0..1500).collect::<Vec<i64>>());
    let mut test = test.restart();
    let (next, update) = test.producer_id();
    assert_eq!(next, 2000, "the rest of a block is lost with the process");
    assert!(update.is_some());
    assert!(
        test.producer_id().1.is_none(),
        "only a new block is written"
    );
}

#[test]
fn a_change_that_cannot_be_stored_is_not_made() {
    let mut test = TestController::new();
    test.controller.log.take_offline();
    let results = test.create(vec![topic("t", 1), topic("no/name", 1)]);
    assert!(matches!(results[0], Err(CreateTopicError::NotStored(_))));
    assert!(
        matches!(results[1], Err(CreateTopicError::Name(_))),
        "what is wrong anyway says so"
    );
    assert!(test.controller.image().topic("t").is_none());
    let (id, _) = test.run(|reply| ControllerCommand::AllocateProducerId { reply });
    assert!(matches!(id, Err(ProducerIdError::NotStored(_))));
}

#[test]
fn the_brokers_own_topics_are_neither_deleted_nor_given_more_partitions() {
    let mut controller = TestController::new();
    controller.create(vec![topic(OFFSETS_TOPIC, 3)])[0]
        .as_ref()
        .unwrap();
    let deleted = controller.delete(vec![TopicSelector::Name(OFFSETS_TOPIC.into())]);
    assert!(matches!(deleted[0], Err(DeleteTopicError::Internal(_))));
    let more = NewPartitions {
        name: OFFSETS_TOPIC.into(),
        total_count: 4,
        assignments: None,
    };
    let added = controller.add_partitions(vec![more]);
    assert!(matches!(added[0], Err(CreatePartitionsError::Internal(_))));
    let image = controller.controller.image();
    assert_eq!(image.topic(OFFSETS_TOPIC).unwrap().partition_count(), 3);
}

#[test]
fn a_stored_topic_whose_partitions_are_not_open_is_no_success_and_stays() {
    let mut controller = TestController::new();
    controller.create(vec![topic("a", 1)])[0].as_ref().unwrap();
    let mut late = Followed::default();
    late.note_late();
    controller.followed = Some(late.clone());
    let created = controller.create(vec![topic("b", 1), topic("a", 1)]);
    assert!(matches!(
        created[0],
        Err(CreateTopicError::NotFollowed(NotFollowed::Late))
    ));
    // Why nothing was stored says more.
    assert!(matches!(created[1], Err(CreateTopicError::Exists(_))));
    let again = controller.create(vec![topic("b", 1)]);
    assert!(matches!(again[0], Err(CreateTopicError::Exists(_))));

    let mut unopened = Followed::default();
    let id = controller.controller.image().topic("a").unwrap().id;
    unopened.note_unopened(id, "full".into());
    controller.followed = Some(unopened);
    let grow = |name: &str| NewPartitions {
        name: name.into(),
        total_count: 2,
        assignments: None,
    };
    let grown = controller.add_partitions(vec![grow("a"), grow("b")]);
    assert!(matches!(
        &grown[..],
        [
            Err(CreatePartitionsError::NotFollowed(NotFollowed::Unopened {
                partition_count: 1,
                ..
            })),
            Ok(())
        ]
    ));
    controller.followed = Some(late);
    let deleted = controller.delete(vec![TopicSelector::Name("a".into())]);
    assert!(matches!(
        deleted[0],
        Err(DeleteTopicError::NotFollowed(NotFollowed::Late))
    ));
    assert!(controller.controller.image().topic("a").is_none());
}
