//! What the log brings back, and what damaged records do.

use super::stage::*;
use crate::group::{
    BadRecord, Coordinator, Generation, GroupAnswer, GroupError, GroupRequest, GroupState, Replayed,
};

#[test]
fn a_stable_group_goes_on_after_a_restart() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    assert_eq!(stage.commit(member_commit(&joined, 0, 9)), Ok(()));
    stage.restart();
    assert_eq!(stage.state(), GroupState::Stable);
    assert_eq!(stage.heartbeat(&joined.member, joined.generation), Ok(()));
    let token = stage.ask(sync(&joined, &[]));
    assert_eq!(&stage.synced(token).assignment[..], b"all");
    assert_eq!(stage.commit(member_commit(&joined, 0, 10)), Ok(()));
    assert_eq!(stage.fetch(0), Some(10));
}

#[test]
fn members_that_are_not_heard_of_after_a_restart_are_out_after_their_sessions() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    stage.restart();
    stage.advance(seconds(9));
    assert_eq!(stage.state(), GroupState::Stable);
    stage.advance(seconds(1));
    assert_eq!(stage.state(), GroupState::Empty);
    assert_eq!(
        stage.heartbeat(&joined.member, joined.generation),
        Err(GroupError::UnknownMember)
    );
    stage.restart();
    assert_eq!(stage.state(), GroupState::Empty);
    let token = stage.ask(join(&[]));
    assert_eq!(stage.joined(token).generation, Generation(3));
}

#[test]
fn a_rebalance_that_was_cut_short_begins_from_the_last_generation_on_disk() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    let token = stage.ask(rejoin(&joined.member));
    let next = stage.joined(token);
    let token = stage.ask(sync(&next, &[(&next.member, b"lost")]));
    stage.restart();
    assert_eq!(stage.take(token), None);
    assert_eq!(
        stage.heartbeat(&next.member, next.generation),
        Err(GroupError::IllegalGeneration)
    );
    assert_eq!(stage.heartbeat(&joined.member, joined.generation), Ok(()));
}

#[test]
fn a_bad_record_changes_nothing_and_one_of_another_kind_is_named() {
    let mut coordinator = Coordinator::<u32>::new(Default::default());
    assert!(matches!(
        coordinator.replay(b"\0\x01\0\x01g", Some(b"")),
        Err(BadRecord::Truncated { .. })
    ));
    let key = b"\0\x01\0\x01g\0\x01t\0\0\0\0";
    assert!(coordinator.replay(key, Some(b"\0\x03\0\0")).is_err());
    assert_eq!(
        coordinator.replay(key, Some(b"\0\x63\0\0")),
        Err(BadRecord::ValueVersion(0x63))
    );
    assert_eq!(coordinator.group_count(), 0);
    assert_eq!(
        coordinator.replay(b"\0\x05whatever", Some(b"x")),
        Ok(Replayed::OtherKind(5))
    );
    assert_eq!(coordinator.replay(key, None), Ok(Replayed::Applied));
    assert_eq!(coordinator.group_count(), 0);
}

#[test]
fn whoever_waits_when_the_coordinator_ends_is_told_so() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    let joining = stage.ask(join(&[]));
    let committing = stage.ask(GroupRequest::Commit(member_commit(&joined, 0, 1)));
    stage.stop();
    assert_eq!(stage.join_error(joining), GroupError::NotCoordinator);
    assert_eq!(
        stage.take(committing),
        Some(GroupAnswer::Commit(vec![Err(GroupError::NotCoordinator)]))
    );
}
