//! Members with instance ids (KIP-345, KIP-814).

use super::stage::*;
use crate::group::{
    Generation, GroupAnswer, GroupError, GroupRequest, GroupState, HeartbeatRequest, InstanceId,
    JoinRequest, Joined, LeaveRequest, LeavingMember, MemberId, WriteRefused,
};

/// A static member alone in a stable group.
fn stable_static(stage: &mut Stage) -> Joined {
    let token = stage.ask(GroupRequest::Join(join_static("i")));
    let joined = stage.joined(token);
    assert!(joined.member.as_str().starts_with("i-"));
    let token = stage.ask(sync(&joined, &[(&joined.member, b"all")]));
    stage.confirm_all();
    stage.synced(token);
    joined
}

fn heartbeat_as(stage: &mut Stage, member: &MemberId, generation: i32) -> Result<(), GroupError> {
    let request = HeartbeatRequest {
        group: group(),
        generation: Generation(generation),
        member: member.clone(),
        instance: Some(InstanceId::new("i")),
    };
    match stage.call(GroupRequest::Heartbeat(request)) {
        GroupAnswer::Heartbeat(result) => result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_static_member_that_comes_back_takes_its_place_without_a_rebalance() {
    let mut stage = Stage::new();
    let old = stable_static(&mut stage);
    let token = stage.ask(GroupRequest::Join(join_static("i")));
    assert_eq!(
        stage.take(token),
        None,
        "its new id has to be on disk first"
    );
    stage.confirm_all();
    let new = stage.joined(token);
    assert_eq!(
        (new.generation, stage.state()),
        (Generation(1), GroupState::Stable)
    );
    assert_ne!(new.member, old.member);
    // An older client must not believe that it has to assign.
    assert_eq!((&new.leader, new.members.len()), (&old.member, 0));
    let token = stage.ask(sync(&new, &[]));
    assert_eq!(&stage.synced(token).assignment[..], b"all");
    assert_eq!(
        heartbeat_as(&mut stage, &old.member, 1),
        Err(GroupError::FencedInstance)
    );
    assert_eq!(heartbeat_as(&mut stage, &new.member, 1), Ok(()));
}

#[test]
fn a_leader_that_comes_back_is_told_to_skip_the_assignment_if_it_can() {
    let mut stage = Stage::new();
    stable_static(&mut stage);
    let token = stage.ask(GroupRequest::Join(JoinRequest {
        can_skip_assignment: true,
        ..join_static("i")
    }));
    stage.confirm_all();
    let new = stage.joined(token);
    assert!(new.skip_assignment);
    assert_eq!((&new.leader, new.members.len()), (&new.member, 1));
}

#[test]
fn one_that_comes_back_with_another_subscription_makes_the_group_share_anew() {
    let mut stage = Stage::new();
    stable_static(&mut stage);
    let mut request = join_static("i");
    request.protocols[0].metadata = subscription(&["t", "u"]);
    let token = stage.ask(GroupRequest::Join(request));
    assert_eq!(stage.joined(token).generation, Generation(2));
    let mut request = join_static("i");
    request.protocols[0].name = "sticky".into();
    let token = stage.ask(GroupRequest::Join(request));
    assert_eq!(
        stage.join_error(token),
        GroupError::InconsistentProtocol,
        "as Kafka has it, a protocol is judged before the member is known to be the only one"
    );
}

#[test]
fn who_waits_under_the_old_id_is_fenced_at_once() {
    let mut stage = Stage::new();
    let first = stable_static(&mut stage);
    let other = stage.ask(join(&[]));
    let waiting = stage.ask(GroupRequest::Join(JoinRequest {
        member: first.member.clone(),
        ..join_static("i")
    }));
    let (leader, _) = (stage.joined(waiting), stage.joined(other));
    let syncing = stage.ask(sync(&leader, &[]));
    let _ = stage.ask(GroupRequest::Join(join_static("i")));
    assert_eq!(stage.sync_error(syncing), GroupError::FencedInstance);
    assert_eq!(stage.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_new_id_that_cannot_be_written_leaves_the_old_one() {
    let mut stage = Stage::new();
    let old = stable_static(&mut stage);
    let token = stage.ask(GroupRequest::Join(join_static("i")));
    assert!(stage.refuse_one(WriteRefused::Unavailable));
    assert_eq!(stage.join_error(token), GroupError::CoordinatorNotAvailable);
    assert_eq!(heartbeat_as(&mut stage, &old.member, 1), Ok(()));
}

#[test]
fn a_rebalance_overtakes_a_new_id_on_its_way_to_the_disk() {
    let mut stage = Stage::new();
    stable_static(&mut stage);
    let back = stage.ask(GroupRequest::Join(join_static("i")));
    let other = stage.ask(join(&[]));
    assert_eq!(stage.joined(back).generation, Generation(2));
    assert_eq!(stage.joined(other).generation, Generation(2));
    stage.confirm_all();
    assert_eq!(stage.state(), GroupState::CompletingRebalance);
}

#[test]
fn a_static_member_that_is_late_stays_until_its_session_ends() {
    let mut stage = Stage::new();
    let member = stable_static(&mut stage);
    let other = stage.ask(join(&[]));
    for _ in 0..11 {
        stage.advance(seconds(5));
        assert_eq!(
            heartbeat_as(&mut stage, &member.member, 1),
            Err(GroupError::RebalanceInProgress)
        );
    }
    stage.advance(seconds(5));
    let joined = stage.joined(other);
    assert_eq!(
        (joined.leader == joined.member, joined.members.len()),
        (true, 2)
    );
}

#[test]
fn an_administrator_removes_a_static_member_by_its_instance_id() {
    let mut stage = Stage::new();
    stable_static(&mut stage);
    let remove = |instance: &str| {
        GroupRequest::Leave(LeaveRequest {
            group: group(),
            members: vec![LeavingMember {
                member: MemberId::new(""),
                instance: Some(InstanceId::new(instance)),
            }],
        })
    };
    let unknown = GroupAnswer::Leave(Ok(vec![Err(GroupError::UnknownMember)]));
    assert_eq!(stage.call(remove("j")), unknown);
    assert_eq!(
        stage.call(remove("i")),
        GroupAnswer::Leave(Ok(vec![Ok(())]))
    );
    assert_eq!(stage.state(), GroupState::Empty);
}

#[test]
fn one_that_comes_back_before_its_first_rebalance_waits_as_a_member_does() {
    let mut stage = Stage::new();
    let first = stage.stable();
    let waiting = stage.ask(GroupRequest::Join(join_static("i")));
    let back = stage.ask(GroupRequest::Join(join_static("i")));
    assert_eq!(stage.join_error(waiting), GroupError::FencedInstance);
    for _ in 0..5 {
        stage.advance(seconds(8));
        let _ = stage.heartbeat(&first.member, first.generation);
    }
    assert_eq!(
        stage.take(back),
        None,
        "it is not thrown out for being silent"
    );
    let again = stage.ask(rejoin(&first.member));
    assert_eq!(stage.joined(again).members.len(), 2);
    assert_eq!(stage.joined(back).generation, Generation(2));
}
