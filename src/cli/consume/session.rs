use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::client::cluster::Cluster;
use crate::client::error::ClientError;
use crate::client::fetch::is_out_of_range;
use crate::client::membership::{Membership, Standing};
use crate::client::metadata::TopicPartition;
use crate::client::offsets::OffsetAt;
use crate::client::outage::Outage;
use crate::model::Offset;

use super::super::exit::CliError;
use super::super::tell;
use super::output::Output;
use super::start::Start;

/// How long a fetch waits for records, and so the longest that a signal or a heartbeat waits.
const FETCH_WAIT: Duration = Duration::from_millis(500);

/// How long no broker may answer before reading ends with an error: as long as a group keeps a member that is not heard of.
const OUTAGE_MAX: Duration = Duration::from_secs(45);

/// Kafka's default for consumers (`auto.commit.interval.ms`).
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);

/// When it ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) records_max: Option<u64>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) until_end: bool,
}

/// Reading from the beginning to the end that was asked for.
pub(super) struct Session {
    start: Start,
    bounds: Bounds,
    output: Output,
    stop: Arc<AtomicBool>,
    positions: BTreeMap<TopicPartition, Offset>,
    /// Where each partition ended when reading began; kept only where that is the end.
    ends: BTreeMap<TopicPartition, Offset>,
    /// In which order the next fetch asks the partitions: those that gave records go to the end.
    in_turn: Vec<TopicPartition>,
    outage: Outage,
    record_count: u64,
    newest: Instant,
}

/// Whether there is more to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    GoOn,
    End,
}

impl Session {
    pub(super) fn new(start: Start, bounds: Bounds, output: Output, stop: Arc<AtomicBool>) -> Self {
        Self {
            start,
            bounds,
            output,
            stop,
            positions: BTreeMap::new(),
            ends: BTreeMap::new(),
            in_turn: Vec::new(),
            outage: Outage::new(OUTAGE_MAX),
            record_count: 0,
            newest: Instant::now(),
        }
    }

    pub(super) fn run_alone(
        &mut self,
        cluster: &mut Cluster,
        partitions: &[TopicPartition],
    ) -> Result<(), CliError> {
        let begun = self.outlast(cluster, |session, cluster| {
            let positions = session.start.positions(cluster, partitions)?;
            Ok(session.begin(cluster, positions)?)
        })?;
        if begun.is_some() {
            while self.outlast(cluster, Self::turn)? == Some(Turn::GoOn) {}
        }
        Ok(())
    }

    /// Reads what the group gives this member, and commits what is printed: what is printed and not committed when it is killed comes again.
    pub(super) fn run_as_member(
        &mut self,
        cluster: &mut Cluster,
        membership: &mut Membership,
    ) -> Result<(), CliError> {
        loop {
            let begun = self.outlast(cluster, |session, cluster| {
                let positions = session.committed(cluster, membership)?;
                Ok(session.begin(cluster, positions)?)
            })?;
            if begun.is_none() || self.generation(cluster, membership)? == Turn::End {
                return Ok(());
            }
            let joined = self.outlast(cluster, |_, cluster| Ok(membership.rejoin(cluster)?))?;
            if joined.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads until the end, or until the group shares its partitions anew.
    fn generation(
        &mut self,
        cluster: &mut Cluster,
        membership: &mut Membership,
    ) -> Result<Turn, CliError> {
        let mut committed = self.positions.clone();
        let mut commit_at = Instant::now() + COMMIT_INTERVAL;
        loop {
            let turn = self.outlast(cluster, Self::turn)?.unwrap_or(Turn::End);
            let standing =
                self.outlast(cluster, |_, cluster| Ok(membership.heartbeat(cluster)?))?;
            let must_rejoin = standing == Some(Standing::MustRejoin);
            let is_over = turn == Turn::End || must_rejoin;
            if !is_over && Instant::now() < commit_at {
                continue;
            }
            let moved = self.moved_since(&committed);
            if !moved.is_empty() {
                let commit =
                    |_: &mut Self, cluster: &mut Cluster| Ok(membership.commit(cluster, &moved)?);
                let taken = self.outlast(cluster, commit)?;
                if taken != Some(Standing::Holds) {
                    tell("what was printed last is not committed, so the group reads it again");
                    return Ok(if taken.is_none() { Turn::End } else { turn });
                }
            }
            if is_over {
                return Ok(turn);
            }
            committed.clone_from(&self.positions);
            commit_at = Instant::now() + COMMIT_INTERVAL;
        }
    }

    /// Does a step again for as long as a restart may take. None: it was told to stop meanwhile.
    fn outlast<T>(
        &mut self,
        cluster: &mut Cluster,
        mut step: impl FnMut(&mut Self, &mut Cluster) -> Result<T, CliError>,
    ) -> Result<Option<T>, CliError> {
        loop {
            match step(self, cluster) {
                Ok(done) => {
                    if self.outage.end() {
                        tell("the cluster answers again");
                    }
                    return Ok(Some(done));
                }
                Err(CliError::Client(error)) => {
                    let limit_s = self.outage.limit().as_secs();
                    self.outage.bear(cluster, error, |error| {
                        tell(&format!("{error}; trying again for up to {limit_s} s"));
                    })?;
                    // Nobody said that there is nothing.
                    self.newest = Instant::now();
                }
                Err(error) => return Err(error),
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }

    /// Where the group goes on; where it has committed nothing, the start.
    fn committed(
        &self,
        cluster: &mut Cluster,
        membership: &Membership,
    ) -> Result<BTreeMap<TopicPartition, Offset>, ClientError> {
        let assigned = membership.assigned();
        let committed = cluster.committed(membership.group())?;
        let mut positions = self.start.positions(cluster, assigned)?;
        for (at, position) in &mut positions {
            if let Some(offset) = committed.get(at) {
                *position = *offset;
            }
        }
        Ok(positions)
    }

    fn begin(
        &mut self,
        cluster: &mut Cluster,
        positions: BTreeMap<TopicPartition, Offset>,
    ) -> Result<(), ClientError> {
        if self.bounds.until_end {
            let partitions: Vec<_> = positions.keys().cloned().collect();
            self.ends = cluster
                .offsets(&partitions, OffsetAt::Latest)?
                .into_iter()
                .map(|(at, end)| (at, end.unwrap_or(Offset::ZERO)))
                .collect();
        }
        self.in_turn = positions.keys().cloned().collect();
        self.positions = positions;
        self.newest = Instant::now();
        Ok(())
    }

    fn moved_since(
        &self,
        before: &BTreeMap<TopicPartition, Offset>,
    ) -> BTreeMap<TopicPartition, Offset> {
        let moved = |(at, position): &(&TopicPartition, &Offset)| before.get(at) != Some(position);
        self.positions
            .iter()
            .filter(moved)
            .map(|(at, position)| (at.clone(), *position))
            .collect()
    }

    fn is_at_end(&self) -> bool {
        let is_full = self
            .bounds
            .records_max
            .is_some_and(|max| self.record_count >= max);
        let is_behind_ends = self.bounds.until_end
            && self
                .positions
                .iter()
                .all(|(at, position)| *position >= self.ends[at]);
        let is_idle = self
            .bounds
            .idle_timeout
            .is_some_and(|timeout| self.newest.elapsed() >= timeout);
        is_full
            || is_behind_ends
            || is_idle
            || self.stop.load(Ordering::Relaxed)
            || self.output.is_abandoned()
    }

    /// One fetch and its records.
    fn turn(&mut self, cluster: &mut Cluster) -> Result<Turn, CliError> {
        if self.is_at_end() {
            return Ok(Turn::End);
        }
        if self.positions.is_empty() {
            // A member without partitions waits for the group to change.
            std::thread::sleep(FETCH_WAIT);
            return Ok(Turn::GoOn);
        }
        let wait = match self.bounds.idle_timeout {
            Some(timeout) => FETCH_WAIT.min(timeout),
            None => FETCH_WAIT,
        };
        let fetched = match cluster.fetch(&self.positions, &self.in_turn, wait) {
            Err(error) if is_out_of_range(&error) => {
                self.move_into_range(cluster, error)?;
                return Ok(Turn::GoOn);
            }
            fetched => fetched?,
        };
        let gave: BTreeSet<TopicPartition> = fetched
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| part.at.clone())
            .collect();
        // A stable sort: the others keep their places.
        self.in_turn.sort_by_key(|at| gave.contains(at));
        let mut reached = Vec::new();
        for part in fetched {
            let end = self.ends.get(&part.at).copied();
            let (output, bounds) = (&mut self.output, &self.bounds);
            let (record_count, newest) = (&mut self.record_count, &mut self.newest);
            let mut is_over = false;
            let position = part.records(|record, timestamp_type| {
                is_over = end.is_some_and(|end| record.offset >= end)
                    || bounds.records_max.is_some_and(|max| *record_count >= max);
                if is_over {
                    return ControlFlow::Break(());
                }
                *record_count += 1;
                *newest = Instant::now();
                match output.write(&part.at, record, timestamp_type) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })?;
            // The record that was one too many is not passed.
            let position = match is_over {
                true => Offset(position.0 - 1),
                false => position,
            };
            reached.push((part.at, position));
        }
        if !self.output.flush()? {
            return Ok(Turn::End);
        }
        // Only now: what was not handed on is not to be committed.
        self.positions.extend(reached);
        Ok(Turn::GoOn)
    }

    /// Records that were to be read have been deleted, or there never were as many: goes on at the nearest that there is.
    fn move_into_range(
        &mut self,
        cluster: &mut Cluster,
        error: ClientError,
    ) -> Result<(), CliError> {
        let partitions: Vec<_> = self.positions.keys().cloned().collect();
        let starts = cluster.offsets(&partitions, OffsetAt::Earliest)?;
        let ends = cluster.offsets(&partitions, OffsetAt::Latest)?;
        let mut moved = false;
        for (at, position) in &mut self.positions {
            let start = starts[at].unwrap_or(Offset::ZERO);
            let end = ends[at].unwrap_or(start);
            let nearest = (*position).clamp(start, end.max(start));
            if nearest != *position {
                tell(&format!(
                    "{at} has no offset {position}; going on at {nearest}"
                ));
                *position = nearest;
                moved = true;
            }
        }
        match moved {
            true => Ok(()),
            false => Err(error.into()),
        }
    }
}
