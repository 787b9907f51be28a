//! Joining, sharing, leaving.

use super::stage::*;
use crate::group::{
    Generation, GroupAnswer, GroupError, GroupRequest, GroupRules, GroupState, HeartbeatRequest,
    InstanceId, JoinRequest, Joined, MemberId, SyncRequest, WriteRefused,
};

/// Two members in a stable group: the leader and the other.
fn pair(stage: &mut Stage) -> (Joined, Joined) {
    let first = stage.stable();
    let second = stage.ask(join(&[]));
    let again = stage.ask(rejoin(&first.member));
    let (leader, other) = (stage.joined(again), stage.joined(second));
    let syncs = [
        stage.ask(sync(
            &leader,
            &[(&leader.member, b"a"), (&other.member, b"b")],
        )),
        stage.ask(sync(&other, &[])),
    ];
    stage.confirm_all();
    assert_eq!(&stage.synced(syncs[0]).assignment[..], b"a");
    assert_eq!(&stage.synced(syncs[1]).assignment[..], b"b");
    (leader, other)
}

#[test]
fn the_first_member_leads_and_is_told_of_everybody() {
    let mut stage = Stage::new();
    let (leader, other) = pair(&mut stage);
    assert_eq!(
        (leader.generation, other.generation),
        (Generation(2), Generation(2))
    );
    assert_eq!(leader.leader, leader.member);
    assert_eq!(other.leader, leader.member);
    assert_eq!((leader.members.len(), other.members.len()), (2, 0));
    assert_eq!(leader.members[0].metadata, subscription(&["t"]));
    assert_eq!(&*leader.protocol_name, "range");
    assert_eq!(stage.generation_count, 2);
    stage.call(leave(&[&leader.member, &other.member]));
    assert_eq!(
        stage.generation_count, 2,
        "without members there is nothing to be shared"
    );
}

#[test]
fn a_new_group_waits_for_more_members_and_as_long_again_while_they_come() {
    let mut stage = Stage::with(GroupRules {
        initial_rebalance_delay: seconds(3),
        ..GroupRules::default()
    });
    let first = stage.ask(join(&[]));
    stage.advance(seconds(2));
    let second = stage.ask(join(&[]));
    stage.advance(seconds(3));
    assert_eq!(stage.take(first), None, "somebody came, so it waits again");
    stage.advance(seconds(1));
    let (first, second) = (stage.joined(first), stage.joined(second));
    assert_eq!(
        (first.generation, second.generation),
        (Generation(1), Generation(1))
    );
    assert_eq!(first.members.len() + second.members.len(), 2);
}

#[test]
fn the_delay_grows_no_further_than_the_rebalance_time_out() {
    let mut stage = Stage::with(GroupRules {
        initial_rebalance_delay: seconds(3),
        ..GroupRules::default()
    });
    let request = || {
        GroupRequest::Join(JoinRequest {
            rebalance_timeout_ms: 10_000,
            ..join_request(&[])
        })
    };
    let first = stage.ask(request());
    for _ in 0..9 {
        stage.advance(seconds(1));
        stage.ask(request());
    }
    assert_eq!(stage.take(first), None);
    stage.advance(seconds(1));
    assert_eq!(stage.joined(first).generation, Generation(1));
}

#[test]
fn a_member_that_must_have_an_id_first_is_given_one() {
    let mut stage = Stage::new();
    let request = JoinRequest {
        member_id_required: true,
        ..join_request(&[])
    };
    let token = stage.ask(GroupRequest::Join(request.clone()));
    let Some(GroupAnswer::Join(Err(refused))) = stage.take(token) else {
        panic!("no id was given");
    };
    assert_eq!(refused.error, GroupError::MemberIdRequired);
    assert!(refused.member.as_str().starts_with("client-"));
    let token = stage.ask(GroupRequest::Join(JoinRequest {
        member: refused.member.clone(),
        ..request
    }));
    assert_eq!(stage.joined(token).member, refused.member);
}

#[test]
fn an_id_that_nobody_comes_with_holds_nothing_up_for_longer_than_its_session() {
    let mut stage = Stage::new();
    let first = stage.stable();
    let token = stage.ask(GroupRequest::Join(JoinRequest {
        member_id_required: true,
        ..join_request(&[])
    }));
    assert_eq!(stage.join_error(token), GroupError::MemberIdRequired);
    assert_eq!(stage.state(), GroupState::Stable);
    let token = stage.ask(rejoin(&first.member));
    assert_eq!(
        stage.take(token),
        None,
        "the rebalance waits for the id that was given"
    );
    stage.advance(seconds(10));
    assert_eq!(stage.joined(token).generation, Generation(2));
}

#[test]
fn everybody_votes_for_an_assignor_that_all_have() {
    let mut stage = Stage::with(GroupRules {
        initial_rebalance_delay: seconds(3),
        ..GroupRules::default()
    });
    let tokens = [
        stage.ask(join(&["sticky", "range", "robin"])),
        stage.ask(join(&["robin", "range"])),
        stage.ask(join(&["robin", "range", "sticky"])),
    ];
    let odd = stage.ask(join(&["sticky"]));
    assert_eq!(stage.join_error(odd), GroupError::InconsistentProtocol);
    stage.advance(seconds(9));
    for token in tokens {
        assert_eq!(&*stage.joined(token).protocol_name, "robin");
    }
    let other_type = stage.ask(GroupRequest::Join(JoinRequest {
        protocol_type: "connect".into(),
        ..join_request(&["robin"])
    }));
    assert_eq!(
        stage.join_error(other_type),
        GroupError::InconsistentProtocol
    );
}

#[test]
fn a_member_without_any_assignor_is_refused() {
    let mut stage = Stage::new();
    let mut request = join_request(&[]);
    request.protocols.clear();
    let token = stage.ask(GroupRequest::Join(request));
    assert_eq!(stage.join_error(token), GroupError::InconsistentProtocol);
    assert_eq!(stage.coordinator.group_count(), 0);
}

#[test]
fn who_does_not_rejoin_in_time_is_out() {
    let mut stage = Stage::new();
    let (leader, other) = pair(&mut stage);
    let third = stage.ask(join(&[]));
    let again = stage.ask(rejoin(&leader.member));
    for _ in 0..12 {
        stage.advance(seconds(5));
        let _ = stage.heartbeat(&other.member, other.generation);
    }
    assert_eq!(stage.joined(again).members.len(), 2);
    assert_eq!(stage.joined(third).generation, Generation(3));
    assert_eq!(
        stage.heartbeat(&other.member, Generation(3)),
        Err(GroupError::UnknownMember)
    );
}

#[test]
fn who_does_not_sync_in_time_is_out_and_the_others_share_anew() {
    let mut stage = Stage::new();
    let first = stage.stable();
    let second = stage.ask(join(&[]));
    let again = stage.ask(rejoin(&first.member));
    let (leader, other) = (stage.joined(again), stage.joined(second));
    let token = stage.ask(sync(&leader, &[(&leader.member, b"a")]));
    stage.confirm_all();
    assert_eq!(&stage.synced(token).assignment[..], b"a");
    for _ in 0..12 {
        stage.advance(seconds(5));
        let _ = stage.heartbeat(&leader.member, leader.generation);
        let _ = stage.heartbeat(&other.member, other.generation);
    }
    assert_eq!(
        stage.heartbeat(&other.member, other.generation),
        Err(GroupError::UnknownMember)
    );
    assert_eq!(
        stage.heartbeat(&leader.member, leader.generation),
        Err(GroupError::RebalanceInProgress)
    );
}

#[test]
fn a_silent_member_is_out_after_its_session() {
    let mut stage = Stage::new();
    let (leader, other) = pair(&mut stage);
    stage.advance(seconds(8));
    assert_eq!(stage.heartbeat(&leader.member, leader.generation), Ok(()));
    stage.advance(seconds(2));
    assert_eq!(
        stage.heartbeat(&leader.member, leader.generation),
        Err(GroupError::RebalanceInProgress)
    );
    assert_eq!(
        stage.heartbeat(&other.member, other.generation),
        Err(GroupError::UnknownMember)
    );
    let token = stage.ask(rejoin(&leader.member));
    assert_eq!(stage.joined(token).members.len(), 1);
}

#[test]
fn a_member_that_waits_for_an_answer_needs_no_heartbeat() {
    let mut stage = Stage::new();
    let (leader, other) = pair(&mut stage);
    let token = stage.ask(rejoin(&leader.member));
    for _ in 0..5 {
        stage.advance(seconds(8));
        assert_eq!(
            stage.heartbeat(&other.member, other.generation),
            Err(GroupError::RebalanceInProgress)
        );
    }
    let second = stage.ask(rejoin(&other.member));
    assert_eq!(stage.joined(token).members.len(), 2);
    assert_eq!(stage.joined(second).generation, Generation(3));
}

#[test]
fn a_new_member_does_not_wait_for_ever() {
    let mut stage = Stage::new();
    let first = stage.ask(GroupRequest::Join(JoinRequest {
        rebalance_timeout_ms: i32::MAX,
        session_timeout_ms: 1_800_000,
        ..join_request(&[])
    }));
    let first = stage.joined(first);
    let token = stage.ask(sync(&first, &[(&first.member, b"a")]));
    stage.confirm_all();
    stage.synced(token);
    let second = stage.ask(join(&[]));
    stage.advance(seconds(299));
    assert_eq!(stage.take(second), None);
    stage.advance(seconds(1));
    assert_eq!(stage.join_error(second), GroupError::UnknownMember);
}

#[test]
fn members_that_leave_are_shared_anew_once() {
    let mut stage = Stage::new();
    let (leader, other) = pair(&mut stage);
    let nobody = MemberId::new("nobody");
    let answer = stage.call(leave(&[&other.member, &nobody]));
    assert_eq!(
        answer,
        GroupAnswer::Leave(Ok(vec![Ok(()), Err(GroupError::UnknownMember)]))
    );
    assert_eq!(stage.state(), GroupState::PreparingRebalance);
    stage.call(leave(&[&leader.member]));
    assert_eq!(stage.state(), GroupState::Empty);
    assert_eq!(
        stage.call(leave(&[&leader.member])),
        GroupAnswer::Leave(Ok(vec![Err(GroupError::UnknownMember)]))
    );
}

#[test]
fn a_follower_that_says_the_same_again_is_only_told_where_the_group_stands() {
    let mut stage = Stage::new();
    let (_, other) = pair(&mut stage);
    let token = stage.ask(rejoin(&other.member));
    assert_eq!(stage.joined(token).generation, other.generation);
    assert_eq!(stage.state(), GroupState::Stable);
    let token = stage.ask(sync(&other, &[]));
    assert_eq!(&stage.synced(token).assignment[..], b"b");
}

#[test]
fn a_follower_with_another_subscription_makes_the_group_share_anew() {
    let mut stage = Stage::new();
    let (_, other) = pair(&mut stage);
    let mut request = join_request(&[]);
    request.member = other.member;
    request.protocols[0].metadata = subscription(&["t", "u"]);
    stage.ask(GroupRequest::Join(request));
    assert_eq!(stage.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_lost_answer_of_a_join_is_given_again() {
    let mut stage = Stage::new();
    let token = stage.ask(join(&[]));
    let first = stage.joined(token);
    let token = stage.ask(rejoin(&first.member));
    assert_eq!(stage.joined(token), first);
    assert_eq!(stage.generation_count, 1, "the same generation");
}

#[test]
fn a_second_join_of_a_member_that_waits_answers_the_first() {
    let mut stage = Stage::new();
    let (leader, _) = pair(&mut stage);
    let first = stage.ask(rejoin(&leader.member));
    let second = stage.ask(rejoin(&leader.member));
    assert_eq!(stage.join_error(first), GroupError::RebalanceInProgress);
    assert_eq!(stage.take(second), None);
}

#[test]
fn a_sync_must_fit_the_group() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    let request = SyncRequest {
        group: group(),
        generation: joined.generation,
        member: joined.member.clone(),
        instance: None,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: Vec::new(),
    };
    let mut error = |request: SyncRequest| {
        let token = stage.ask(GroupRequest::Sync(request));
        match stage.take(token) {
            Some(GroupAnswer::Sync(result)) => result.err(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(error(request.clone()), None);
    let wrong = SyncRequest {
        protocol_name: Some("sticky".into()),
        ..request.clone()
    };
    assert_eq!(error(wrong), Some(GroupError::InconsistentProtocol));
    let wrong = SyncRequest {
        generation: Generation(9),
        ..request.clone()
    };
    assert_eq!(error(wrong), Some(GroupError::IllegalGeneration));
    let wrong = SyncRequest {
        instance: Some(InstanceId::new("i")),
        ..request.clone()
    };
    assert_eq!(error(wrong), Some(GroupError::UnknownMember));
    let wrong = SyncRequest {
        member: MemberId::new("x"),
        ..request
    };
    assert_eq!(error(wrong), Some(GroupError::UnknownMember));
}

#[test]
fn members_are_told_their_assignments_once_those_are_on_disk() {
    let mut stage = Stage::new();
    let token = stage.ask(join(&[]));
    let joined = stage.joined(token);
    let token = stage.ask(sync(&joined, &[(&joined.member, b"all")]));
    assert_eq!(stage.take(token), None);
    assert_eq!(
        stage.state_without_writing(),
        GroupState::CompletingRebalance
    );
    stage.confirm_all();
    assert_eq!(&stage.synced(token).assignment[..], b"all");
    assert_eq!(stage.state(), GroupState::Stable);
}

#[test]
fn an_assignment_that_cannot_be_written_makes_the_members_join_again() {
    let mut stage = Stage::new();
    let token = stage.ask(join(&[]));
    let joined = stage.joined(token);
    for (why, error) in [
        (
            WriteRefused::Unavailable,
            GroupError::CoordinatorNotAvailable,
        ),
        (WriteRefused::TooLarge, GroupError::GroupTooLarge),
    ] {
        let token = stage.ask(rejoin(&joined.member));
        let joined = stage.joined(token);
        let token = stage.ask(sync(&joined, &[(&joined.member, b"all")]));
        assert!(stage.refuse_one(why));
        assert_eq!(stage.sync_error(token), error);
        assert_eq!(stage.state(), GroupState::PreparingRebalance);
    }
}

#[test]
fn a_rebalance_overtakes_an_assignment_on_its_way_to_the_disk() {
    let mut stage = Stage::new();
    let token = stage.ask(join(&[]));
    let joined = stage.joined(token);
    let syncing = stage.ask(sync(&joined, &[(&joined.member, b"all")]));
    let second = stage.ask(join(&[]));
    assert_eq!(stage.sync_error(syncing), GroupError::RebalanceInProgress);
    stage.confirm_all();
    assert_eq!(stage.state(), GroupState::PreparingRebalance);
    let again = stage.ask(rejoin(&joined.member));
    assert_eq!(stage.joined(again).generation, Generation(2));
    stage.joined(second);
}

#[test]
fn an_unknown_group_has_no_members() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.heartbeat(&MemberId::new("x"), Generation(1)),
        Err(GroupError::UnknownMember)
    );
    let token = stage.ask(rejoin(&MemberId::new("x")));
    assert_eq!(stage.join_error(token), GroupError::UnknownMember);
    let request = HeartbeatRequest {
        group: crate::group::GroupId::new(""),
        generation: Generation(1),
        member: MemberId::new("x"),
        instance: None,
    };
    assert_eq!(
        stage.call(GroupRequest::Heartbeat(request)),
        GroupAnswer::Heartbeat(Err(GroupError::InvalidGroupId))
    );
}

#[test]
fn a_group_is_described_and_listed_as_it_stands() {
    let mut stage = Stage::new();
    let joined = stage.stable();
    let GroupAnswer::Describe(Ok(described)) = stage.call(GroupRequest::Describe(group())) else {
        panic!("the group is there");
    };
    assert_eq!(described.state, GroupState::Stable);
    assert_eq!(&*described.protocol_name, "range");
    let member = &described.members[0];
    assert_eq!(member.member, joined.member);
    assert_eq!(
        (&*member.client_id, &*member.client_host),
        ("client", "/127.0.0.1")
    );
    assert_eq!(&member.assignment[..], b"all");
    assert_eq!(member.metadata, subscription(&["t"]));
    let list = |stage: &mut Stage, states: Option<Vec<GroupState>>| {
        let request = crate::group::ListRequest { states };
        match stage.call(GroupRequest::List(request)) {
            GroupAnswer::List(listed) => listed.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(list(&mut stage, None), 1);
    assert_eq!(list(&mut stage, Some(vec![GroupState::Stable])), 1);
    assert_eq!(list(&mut stage, Some(vec![GroupState::Empty])), 0);
    assert_eq!(list(&mut stage, Some(Vec::new())), 0);
}
