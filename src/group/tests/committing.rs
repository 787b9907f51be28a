//! Offsets: who may commit, what is seen when, and when it goes.

use std::time::Duration;

use super::stage::*;
use crate::group::{
    CommitRequest, DeleteOffsetsRequest, FetchOffsetsRequest, FetchPartitions, Generation,
    GroupAnswer, GroupError, GroupId, GroupRequest, GroupRules, GroupState, MemberId,
    TopicPartitions, WriteRefused,
};
use crate::model::{LeaderEpoch, PartitionIndex, TopicId, TopicName};

#[test]
fn an_offset_is_seen_once_it_is_on_disk_and_comes_back_as_it_was() {
    let mut stage = Stage::new();
    let token = stage.ask(GroupRequest::Commit(simple_commit(0, 7)));
    let fetch = |stage: &mut Stage, partitions| {
        let group = group();
        let request = FetchOffsetsRequest { group, partitions };
        let token = stage.ask(GroupRequest::FetchOffsets(request));
        match stage.take(token) {
            Some(GroupAnswer::FetchOffsets(Ok(found))) => found,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stage.take(token), None);
    assert!(fetch(&mut stage, FetchPartitions::All).is_empty());
    stage.confirm_all();
    assert_eq!(stage.take(token), Some(GroupAnswer::Commit(vec![Ok(())])));
    let found = fetch(&mut stage, FetchPartitions::All);
    let committed = found[0].committed.as_ref().unwrap();
    assert_eq!((found.len(), committed.offset.0), (1, 7));
    assert_eq!(committed.leader_epoch, LeaderEpoch(3));
    assert_eq!(&*committed.metadata, "meta");
    let these = FetchPartitions::These(vec![TopicPartitions {
        topic: topic(),
        topic_id: TopicId::ZERO,
        partitions: vec![PartitionIndex(5), PartitionIndex(0)],
    }]);
    let found = fetch(&mut stage, these);
    assert!(found[0].committed.is_none() && found[1].committed.is_some());
}

#[test]
fn an_offset_is_not_shown_for_a_new_topic_of_the_same_name() {
    let mut stage = Stage::new();
    let mut request = simple_commit(0, 7);
    let id = TopicId(uuid::Uuid::from_u128(1));
    request.offsets[0].topic_id = id;
    assert_eq!(stage.commit(request), Ok(()));
    stage.restart();
    for (asked, is_seen) in [
        (id, true),
        (TopicId(uuid::Uuid::from_u128(2)), false),
        (TopicId::ZERO, true),
    ] {
        let partitions = FetchPartitions::These(vec![TopicPartitions {
            topic: topic(),
            topic_id: asked,
            partitions: vec![PartitionIndex(0)],
        }]);
        let group = group();
        let request = FetchOffsetsRequest { group, partitions };
        let GroupAnswer::FetchOffsets(Ok(found)) = stage.call(GroupRequest::FetchOffsets(request))
        else {
            panic!("an error");
        };
        assert_eq!(found[0].committed.is_some(), is_seen, "{asked}");
    }
}

#[test]
fn only_members_of_this_generation_commit_while_there_are_members() {
    let mut stage = Stage::new();
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    let joined = stage.stable();
    assert_eq!(
        stage.commit(simple_commit(0, 2)),
        Err(GroupError::UnknownMember)
    );
    assert_eq!(stage.commit(member_commit(&joined, 0, 3)), Ok(()));
    let old = CommitRequest {
        generation: Generation(0),
        ..member_commit(&joined, 0, 4)
    };
    assert_eq!(stage.commit(old), Err(GroupError::IllegalGeneration));
    let stranger = CommitRequest {
        member: MemberId::new("x"),
        ..member_commit(&joined, 0, 5)
    };
    assert_eq!(stage.commit(stranger), Err(GroupError::UnknownMember));
    assert_eq!(stage.fetch(0), Some(3));
}

#[test]
fn a_commit_during_a_rebalance_counts_until_the_new_generation_is_joined() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    let second = stage.ask(join(&[]));
    assert_eq!(stage.state(), GroupState::PreparingRebalance);
    assert_eq!(stage.commit(member_commit(&joined, 0, 3)), Ok(()));
    let again = stage.ask(rejoin(&joined.member));
    let (again, _) = (stage.joined(again), stage.joined(second));
    assert_eq!(
        stage.commit(member_commit(&joined, 0, 4)),
        Err(GroupError::IllegalGeneration)
    );
    assert_eq!(
        stage.commit(member_commit(&again, 0, 5)),
        Err(GroupError::RebalanceInProgress)
    );
}

#[test]
fn a_member_of_a_group_that_nobody_knows_cannot_commit() {
    let mut stage = Stage::new();
    let request = CommitRequest {
        generation: Generation(1),
        member: MemberId::new("m"),
        ..simple_commit(0, 1)
    };
    assert_eq!(stage.commit(request), Err(GroupError::IllegalGeneration));
    assert_eq!(stage.coordinator.group_count(), 0);
}

#[test]
fn a_commit_keeps_its_member_alive() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    for at in 0..5 {
        stage.advance(seconds(8));
        assert_eq!(stage.commit(member_commit(&joined, 0, at)), Ok(()));
    }
    assert_eq!(stage.state(), GroupState::Stable);
}

#[test]
fn each_offset_of_a_request_has_its_own_result() {
    let mut stage = Stage::new();
    let mut request = simple_commit(0, 1);
    request.offsets.push(offset(1, 2));
    request.offsets[0].metadata = "x".repeat(4097);
    let results = vec![Err(GroupError::OffsetMetadataTooLarge), Ok(())];
    let answer = stage.call(GroupRequest::Commit(request.clone()));
    assert_eq!(answer, GroupAnswer::Commit(results));
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, Some(2)));
    request.offsets[0].metadata = "x".repeat(4096);
    let answer = stage.call(GroupRequest::Commit(request));
    assert_eq!(answer, GroupAnswer::Commit(vec![Ok(()), Ok(())]));
}

#[test]
fn a_commit_that_cannot_be_written_changes_nothing() {
    let mut stage = Stage::new();
    for (why, error) in [
        (
            WriteRefused::Unavailable,
            GroupError::CoordinatorNotAvailable,
        ),
        (WriteRefused::NotCoordinator, GroupError::NotCoordinator),
        (WriteRefused::TooLarge, GroupError::CommitTooLarge),
    ] {
        let token = stage.ask(GroupRequest::Commit(simple_commit(0, 1)));
        assert!(stage.refuse_one(why));
        assert_eq!(
            stage.take(token),
            Some(GroupAnswer::Commit(vec![Err(error)]))
        );
        assert_eq!(stage.fetch(0), None);
        assert_eq!(stage.coordinator.group_count(), 0, "nothing is left of it");
    }
}

fn delete(partitions: &[i32]) -> GroupRequest {
    let partitions = partitions.iter().copied().map(PartitionIndex).collect();
    GroupRequest::DeleteOffsets(DeleteOffsetsRequest {
        group: group(),
        partitions: vec![(topic(), partitions)],
    })
}

#[test]
fn offsets_are_deleted_unless_members_want_the_topic() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.call(delete(&[0])),
        GroupAnswer::DeleteOffsets(Err(GroupError::GroupNotFound))
    );
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    assert_eq!(stage.commit(simple_commit(1, 1)), Ok(()));
    assert_eq!(
        stage.call(delete(&[0, 9])),
        GroupAnswer::DeleteOffsets(Ok(vec![Ok(()), Ok(())]))
    );
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, Some(1)));
    stage.stable();
    let subscribed = Err(GroupError::SubscribedToTopic);
    assert_eq!(
        stage.call(delete(&[1])),
        GroupAnswer::DeleteOffsets(Ok(vec![subscribed]))
    );
    stage.restart();
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, Some(1)));
}

#[test]
fn a_group_is_deleted_once_nobody_is_in_it() {
    let mut stage = Stage::new();
    let deleted = |stage: &mut Stage| match stage.call(GroupRequest::DeleteGroup(group())) {
        GroupAnswer::DeleteGroup(result) => result,
        other => panic!("{other:?}"),
    };
    assert_eq!(deleted(&mut stage), Err(GroupError::GroupNotFound));
    let joined = stage.stable();
    assert_eq!(stage.commit(member_commit(&joined, 0, 1)), Ok(()));
    assert_eq!(deleted(&mut stage), Err(GroupError::NonEmptyGroup));
    stage.call(leave(&[&joined.member]));
    assert_eq!(deleted(&mut stage), Ok(()));
    assert_eq!((stage.fetch(0), stage.state()), (None, GroupState::Dead));
    assert_eq!(stage.coordinator.bytes(), 0);
    stage.restart();
    assert_eq!(stage.coordinator.group_count(), 0);
}

#[test]
fn while_a_group_is_being_deleted_everybody_is_asked_to_wait() {
    let mut stage = Stage::new();
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    let before = stage.ask(GroupRequest::Commit(simple_commit(1, 1)));
    let deleting = stage.ask(GroupRequest::DeleteGroup(group()));
    let token = stage.ask(join(&[]));
    assert_eq!(stage.join_error(token), GroupError::CoordinatorLoading);
    let loading = Err(GroupError::CoordinatorLoading);
    let token = stage.ask(GroupRequest::Commit(simple_commit(0, 2)));
    assert_eq!(stage.take(token), Some(GroupAnswer::Commit(vec![loading])));
    stage.confirm_all();
    assert_eq!(stage.take(before), Some(GroupAnswer::Commit(vec![Ok(())])));
    assert_eq!(stage.take(deleting), Some(GroupAnswer::DeleteGroup(Ok(()))));
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, None));
    assert_eq!(stage.commit(simple_commit(0, 2)), Ok(()));
    let deleting = stage.ask(GroupRequest::DeleteGroup(group()));
    stage.refuse_one(WriteRefused::Unavailable);
    assert_eq!(
        stage.take(deleting),
        Some(GroupAnswer::DeleteGroup(Err(
            GroupError::CoordinatorNotAvailable
        )))
    );
    assert_eq!(stage.fetch(0), Some(2));
}

#[test]
fn the_offsets_of_a_deleted_topic_go_in_every_group() {
    let mut stage = Stage::new();
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    let other = TopicName::new("u").unwrap();
    let mut request = simple_commit(0, 5);
    request.offsets[0].topic = other.clone();
    request.group = GroupId::new("h");
    assert_eq!(stage.commit(request), Ok(()));
    let (now, wall) = (stage.now, stage.wall);
    let groups = stage.coordinator.group_ids();
    let effects = stage
        .coordinator
        .forget_topics(&groups, &[topic()], now, wall);
    assert_eq!(effects.writes.len(), 1);
    stage.writes.extend(effects.writes);
    assert_eq!(stage.fetch(0), None);
    assert_eq!(stage.coordinator.group_count(), 1);
    stage.restart();
    assert_eq!((stage.fetch(0), stage.coordinator.group_count()), (None, 1));
}

fn with_retention() -> Stage {
    Stage::with(GroupRules {
        initial_rebalance_delay: Duration::ZERO,
        offsets_retention: seconds(3_600),
        offsets_retention_check_interval: seconds(600),
        ..GroupRules::default()
    })
}

#[test]
fn offsets_of_those_who_are_no_members_expire_by_their_own_age() {
    let mut stage = with_retention();
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    stage.advance(seconds(1_800));
    assert_eq!(stage.commit(simple_commit(1, 1)), Ok(()));
    stage.advance(seconds(1_801));
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, Some(1)));
    stage.advance(seconds(2_400));
    stage.confirm_all();
    assert_eq!(stage.coordinator.group_count(), 0);
    stage.restart();
    assert_eq!(stage.coordinator.group_count(), 0);
}

#[test]
fn offsets_of_a_group_expire_when_it_has_been_empty_for_long() {
    let mut stage = with_retention();
    let joined = stage.stable();
    for at in 0..1_000 {
        stage.advance(seconds(8));
        let request = member_commit(&joined, i32::from(at > 0), at);
        assert_eq!(stage.commit(request), Ok(()));
    }
    assert_eq!(
        stage.fetch(0),
        Some(0),
        "a topic that is wanted does not expire"
    );
    stage.call(leave(&[&joined.member]));
    stage.advance(seconds(3_000));
    assert_eq!(stage.fetch(0), Some(0));
    stage.restart();
    stage.advance(seconds(1_300));
    stage.confirm_all();
    assert_eq!(stage.coordinator.group_count(), 0);
    let key = &stage.log.last().unwrap().key;
    assert_eq!(&key[..], b"\0\x02\0\x01g", "the group's own tombstone");
}

#[test]
fn offsets_of_topics_that_nobody_wants_any_more_expire_in_a_stable_group() {
    let mut stage = with_retention();
    let joined = stage.stable();
    let mut request = member_commit(&joined, 0, 1);
    request.offsets[0].topic = TopicName::new("unwanted").unwrap();
    assert_eq!(stage.commit(request), Ok(()));
    let bytes = stage.coordinator.bytes();
    for at in 0..600 {
        stage.advance(seconds(8));
        assert_eq!(stage.commit(member_commit(&joined, 0, at)), Ok(()));
    }
    stage.confirm_all();
    assert_eq!(stage.fetch(0), Some(599));
    let request = FetchOffsetsRequest {
        group: group(),
        partitions: FetchPartitions::All,
    };
    let GroupAnswer::FetchOffsets(Ok(found)) = stage.call(GroupRequest::FetchOffsets(request))
    else {
        panic!("an error");
    };
    assert_eq!(found.len(), 1);
    assert_eq!(
        stage.coordinator.bytes(),
        bytes,
        "the one took the place of the other"
    );
}

#[test]
fn an_offset_with_a_retention_of_its_own_expires_by_that() {
    let mut stage = with_retention();
    let request = CommitRequest {
        retention_ms: Some(7_200_000),
        ..simple_commit(0, 1)
    };
    assert_eq!(stage.commit(request), Ok(()));
    stage.restart();
    stage.advance(seconds(7_100));
    assert_eq!(stage.fetch(0), Some(1));
    stage.advance(seconds(1_000));
    assert_eq!(stage.fetch(0), None);
}

#[test]
fn no_offset_expires_by_what_the_wall_clock_has_jumped_ahead() {
    const JUMP_MS: i64 = 10 * 24 * 3_600_000;
    let mut stage = with_retention();
    let own = CommitRequest {
        retention_ms: Some(7_200_000),
        ..simple_commit(1, 1)
    };
    assert_eq!(stage.commit(simple_commit(0, 1)), Ok(()));
    assert_eq!(stage.commit(own), Ok(()));
    (stage.wall.0, stage.held_ms) = (stage.wall.0 + JUMP_MS, JUMP_MS);
    stage.advance(seconds(2_500));
    assert_eq!((stage.fetch(0), stage.fetch(1)), (Some(1), Some(1)));
    stage.advance(seconds(2_500));
    assert_eq!((stage.fetch(0), stage.fetch(1)), (None, Some(1)));
}
