//! What happens at each bound.

use super::stage::*;
use crate::group::{
    GroupAnswer, GroupError, GroupId, GroupRequest, GroupRules, JoinRequest, MemberId,
};
use crate::model::PartitionIndex;
use crate::model::limits::{
    GIVEN_MEMBER_IDS_PER_GROUP_MAX, GROUP_BYTES_PER_PARTITION_MAX, GROUP_MEMBER_METADATA_BYTES_MAX,
    GROUP_MEMBER_PROTOCOLS_MAX, GROUP_NAME_BYTES_MAX, GROUPS_PER_PARTITION_MAX,
    OFFSETS_PER_GROUP_MAX,
};

#[test]
fn a_group_takes_no_more_members_than_the_setting_allows() {
    let mut stage = Stage::with(GroupRules {
        initial_rebalance_delay: seconds(3),
        max_size: 2,
        ..GroupRules::default()
    });
    let tokens = [stage.ask(join(&[])), stage.ask(join(&[]))];
    let third = stage.ask(join(&[]));
    assert_eq!(stage.join_error(third), GroupError::GroupFull);
    stage.advance(seconds(9));
    let joined = tokens.map(|token| stage.joined(token));
    let third = stage.ask(join(&[]));
    assert_eq!(stage.join_error(third), GroupError::GroupFull);
    let token = stage.ask(rejoin(&joined[0].member));
    assert_eq!(stage.joined(token).generation, joined[0].generation);
}

#[test]
fn a_lowered_limit_leaves_out_the_last_to_rejoin() {
    let mut stage = Stage::new();
    let first = stage.stable();
    let second = stage.ask(join(&[]));
    let again = stage.ask(rejoin(&first.member));
    let (first, second) = (stage.joined(again), stage.joined(second));
    stage.rules.max_size = 1;
    stage.coordinator.set_rules(stage.rules.clone());
    let mut request = join_request(&[]);
    request.member = second.member;
    request.protocols[0].metadata = subscription(&["other"]);
    let kept = stage.ask(GroupRequest::Join(request));
    let left_out = stage.ask(rejoin(&first.member));
    assert_eq!(stage.join_error(left_out), GroupError::GroupFull);
    assert_eq!(stage.joined(kept).members.len(), 1);
}

#[test]
fn session_time_outs_are_held_to_the_settings() {
    let mut stage = Stage::new();
    for (session_timeout_ms, is_allowed) in [
        (5_999, false),
        (6_000, true),
        (1_800_000, true),
        (1_800_001, false),
        (-1, false),
    ] {
        let token = stage.ask(GroupRequest::Join(JoinRequest {
            session_timeout_ms,
            ..join_request(&[])
        }));
        match stage.take(token) {
            Some(GroupAnswer::Join(Err(refused))) => {
                assert!(!is_allowed, "{session_timeout_ms}");
                assert_eq!(refused.error, GroupError::InvalidSessionTimeout);
            }
            _ => assert!(is_allowed, "{session_timeout_ms}"),
        }
    }
}

#[test]
fn names_and_metadata_have_bounds() {
    let mut stage = Stage::new();
    let long = "x".repeat(GROUP_NAME_BYTES_MAX + 1);
    let mut error = |request: JoinRequest| {
        let token = stage.ask(GroupRequest::Join(request));
        stage.join_error(token)
    };
    let request = join_request(&[]);
    for group in ["", &long] {
        let wrong = JoinRequest {
            group: GroupId::new(group),
            ..request.clone()
        };
        assert_eq!(error(wrong), GroupError::InvalidGroupId);
    }
    let wrong = join_static(&long);
    assert_eq!(error(wrong), GroupError::TooLong);
    let wrong = JoinRequest {
        client_id: long.clone(),
        ..request.clone()
    };
    assert_eq!(error(wrong), GroupError::TooLong);
    assert_eq!(error(join_request(&[&long])), GroupError::TooLong);
    let many = vec!["p"; GROUP_MEMBER_PROTOCOLS_MAX + 1];
    assert_eq!(error(join_request(&many)), GroupError::TooLong);
    let mut wrong = request;
    wrong.protocols[0].metadata = vec![0; GROUP_MEMBER_METADATA_BYTES_MAX + 1].into();
    assert_eq!(error(wrong), GroupError::TooLong);
    let mut wrong = simple_commit(0, 1);
    wrong.group = GroupId::new(&long);
    assert_eq!(stage.commit(wrong), Err(GroupError::InvalidGroupId));
    assert_eq!(stage.coordinator.group_count(), 0);
}

#[test]
fn groups_without_member_and_offset_take_nothing() {
    let mut stage = Stage::new();
    for number in 0..100_000 {
        let mut request = join_request(&[]);
        request.group = GroupId::new(&format!("g{number}"));
        request.member = MemberId::new("unknown");
        stage.ask(GroupRequest::Join(request));
        stage.answers.clear();
    }
    assert_eq!(
        (stage.coordinator.group_count(), stage.coordinator.bytes()),
        (0, 0)
    );
    assert_eq!(stage.coordinator.next_deadline(), None);
}

#[test]
fn groups_beyond_the_limit_are_refused_and_those_that_are_there_go_on() {
    let mut stage = Stage::new();
    for number in 0..GROUPS_PER_PARTITION_MAX {
        let mut request = simple_commit(0, 1);
        request.group = GroupId::new(&format!("g{number}"));
        assert_eq!(stage.commit(request), Ok(()));
    }
    assert_eq!(
        stage.commit(simple_commit(0, 1)),
        Err(GroupError::CommitTooLarge)
    );
    let token = stage.ask(join(&[]));
    assert_eq!(stage.join_error(token), GroupError::GroupFull);
    let mut request = simple_commit(1, 2);
    request.group = GroupId::new("g0");
    assert_eq!(stage.commit(request), Ok(()));
    assert_eq!(stage.coordinator.group_count(), GROUPS_PER_PARTITION_MAX);
}

#[test]
fn a_full_coordinator_looks_for_groups_that_have_ended() {
    let mut stage = Stage::new();
    for number in 0..GROUPS_PER_PARTITION_MAX {
        let mut request = join_request(&[]);
        request.group = GroupId::new(&format!("g{number}"));
        stage.ask(GroupRequest::Join(request));
    }
    let token = stage.ask(join(&[]));
    assert_eq!(stage.join_error(token), GroupError::GroupFull);
    // All members are gone: what is left are names with a generation.
    for _ in 0..8 {
        stage.advance(seconds(20));
        stage.confirm_all();
    }
    stage.ask(join(&[]));
    stage.advance(seconds(20));
    stage.confirm_all();
    assert!(stage.coordinator.group_count() < 10);
}

#[test]
fn memory_for_groups_is_bounded() {
    let mut stage = Stage::new();
    let mut refused = None;
    for number in 0..1_000 {
        let mut request = join_request(&[]);
        request.group = GroupId::new(&format!("g{number}"));
        request.protocols[0].metadata = vec![0; GROUP_MEMBER_METADATA_BYTES_MAX].into();
        let token = stage.ask(GroupRequest::Join(request));
        if let Some(GroupAnswer::Join(Err(it))) = stage.take(token) {
            refused = Some((number, it.error));
            break;
        }
    }
    let (number, error) = refused.expect("there is a bound");
    assert_eq!(error, GroupError::GroupFull);
    assert!(number < GROUP_BYTES_PER_PARTITION_MAX / GROUP_MEMBER_METADATA_BYTES_MAX + 2);
    assert!(stage.coordinator.bytes() <= GROUP_BYTES_PER_PARTITION_MAX);
    // A member may not grow into what is not there, but goes on as it is.
    let small = stage.ask(join(&[]));
    let small = stage.joined(small);
    let mut request = join_request(&[]);
    request.member = small.member.clone();
    request.protocols[0].metadata = vec![0; GROUP_MEMBER_METADATA_BYTES_MAX].into();
    let token = stage.ask(GroupRequest::Join(request));
    assert_eq!(stage.join_error(token), GroupError::GroupFull);
    let mut request = simple_commit(0, 1);
    request.group = GroupId::new("offsets");
    request.offsets = (0..500).map(|partition| offset(partition, 1)).collect();
    for it in &mut request.offsets {
        it.metadata = "x".repeat(4_096);
    }
    assert_eq!(stage.commit(request), Err(GroupError::CommitTooLarge));
    let token = stage.ask(rejoin(&small.member));
    assert_eq!(stage.joined(token).member, small.member);
}

#[test]
fn a_group_keeps_offsets_of_so_many_partitions() {
    let mut stage = Stage::new();
    let mut request = simple_commit(0, 1);
    request.offsets[0].metadata.clear();
    let one = request.offsets[0].clone();
    request.offsets = (0..OFFSETS_PER_GROUP_MAX as i32)
        .map(|partition| crate::group::OffsetToCommit {
            partition: PartitionIndex(partition),
            ..one.clone()
        })
        .collect();
    assert_eq!(stage.commit(request), Ok(()));
    assert_eq!(
        stage.commit(simple_commit(OFFSETS_PER_GROUP_MAX as i32, 1)),
        Err(GroupError::CommitTooLarge)
    );
    assert_eq!(stage.commit(simple_commit(0, 2)), Ok(()));
}

#[test]
fn ids_that_nobody_comes_with_are_bounded() {
    let mut stage = Stage::new();
    let request = JoinRequest {
        member_id_required: true,
        ..join_request(&[])
    };
    for _ in 0..GIVEN_MEMBER_IDS_PER_GROUP_MAX {
        let token = stage.ask(GroupRequest::Join(JoinRequest {
            fresh: uuid::Uuid::new_v4(),
            ..request.clone()
        }));
        assert_eq!(stage.join_error(token), GroupError::MemberIdRequired);
    }
    let token = stage.ask(GroupRequest::Join(request));
    assert_eq!(stage.join_error(token), GroupError::GroupFull);
    stage.advance(seconds(10));
    assert_eq!(
        (stage.coordinator.group_count(), stage.coordinator.bytes()),
        (0, 0)
    );
    assert_eq!(stage.coordinator.next_deadline(), None);
}
