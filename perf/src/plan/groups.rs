//! Whether consumers are members of groups, and how these behave.

use std::time::Duration;

use super::check::within;
use super::{PlanError, named};
use crate::cli::{GroupAssignmentArg, RunArgs};
use crate::consumer::group::{Assignor, GroupSettings};
use crate::driver::GroupConfig;

/// Those of Kafka's consumers, but for the last: nobody here works on what was polled.
const SESSION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(45);
const HEARTBEAT_INTERVAL_DEFAULT: Duration = Duration::from_secs(3);
const COMMIT_INTERVAL_DEFAULT: Duration = Duration::from_secs(5);
const REBALANCE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// Kafka's brokers take no longer session (`group.max.session.timeout.ms`).
const TIMEOUT_MAX: Duration = Duration::from_secs(1800);

impl RunArgs {
    /// None: each consumer has its partitions for good.
    pub(super) fn groups(
        &self,
        of_workload: bool,
        consumers: u32,
        driver: &GroupConfig,
    ) -> Result<Option<GroupSettings>, PlanError> {
        let assignor = match self.group_assignment {
            Some(GroupAssignmentArg::None) => None,
            Some(GroupAssignmentArg::Range) => Some(Assignor::Range),
            Some(GroupAssignmentArg::RoundRobin) => Some(Assignor::RoundRobin),
            None if of_workload => Some(driver.assignor.unwrap_or(Assignor::Range)),
            None => driver.assignor,
        };
        let Some(assignor) = assignor.filter(|_| consumers > 0) else {
            return self.refuse_what_only_groups_need(driver);
        };
        let settings = GroupSettings {
            assignor,
            session_timeout: driver.session_timeout.unwrap_or(SESSION_TIMEOUT_DEFAULT),
            heartbeat_interval: driver
                .heartbeat_interval
                .unwrap_or(HEARTBEAT_INTERVAL_DEFAULT),
            rebalance_timeout: driver
                .rebalance_timeout
                .unwrap_or(REBALANCE_TIMEOUT_DEFAULT),
            commit_interval: self.commit_interval.unwrap_or(match driver.auto_commit {
                Some(false) => Duration::ZERO,
                _ => driver
                    .auto_commit_interval
                    .unwrap_or(COMMIT_INTERVAL_DEFAULT),
            }),
            rebalance_every: self.rebalance_every,
        };
        for (name, time) in [
            ("session.timeout.ms", settings.session_timeout),
            ("heartbeat.interval.ms", settings.heartbeat_interval),
            ("max.poll.interval.ms", settings.rebalance_timeout),
            (
                "rebalance interval",
                settings.rebalance_every.unwrap_or(TIMEOUT_MAX),
            ),
        ] {
            if time.is_zero() {
                return Err(PlanError::Zero { name });
            }
            let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            within(name, milliseconds, TIMEOUT_MAX.as_millis() as u64)?;
        }
        Ok(Some(settings))
    }

    fn refuse_what_only_groups_need(
        &self,
        driver: &GroupConfig,
    ) -> Result<Option<GroupSettings>, PlanError> {
        let without_groups =
            "where consumers are in no group; --group-assignment puts them into one";
        let flags = [
            ("commit-interval", self.commit_interval.is_some()),
            ("rebalance-every", self.rebalance_every.is_some()),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(PlanError::WithoutEffect {
                flag,
                reason: without_groups,
            }),
            None if driver.auto_commit == Some(true) => Err(PlanError::AutoCommitWithoutGroup),
            None => Ok(None),
        }
    }
}

/// Under Kafka's names.
pub(super) fn consumer_config(group: &GroupSettings) -> impl Iterator<Item = (String, String)> {
    let ms = |time: Duration| time.as_millis().to_string();
    let all = named([
        (
            "partition.assignment.strategy",
            group.assignor.name().to_owned(),
        ),
        ("session.timeout.ms", ms(group.session_timeout)),
        ("heartbeat.interval.ms", ms(group.heartbeat_interval)),
        ("max.poll.interval.ms", ms(group.rebalance_timeout)),
        (
            "enable.auto.commit",
            (!group.commit_interval.is_zero()).to_string(),
        ),
        ("auto.commit.interval.ms", ms(group.commit_interval)),
    ]);
    let commits_by_time = !group.commit_interval.is_zero();
    all.into_iter()
        .filter(move |(name, _)| commits_by_time || name != "auto.commit.interval.ms")
}
