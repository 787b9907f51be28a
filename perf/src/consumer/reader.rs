//! The fetch loop that all consumers share: while one answer is read through, the next is already asked for.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::client::batches::whole_batches;
use crate::client::cluster::BrokerAddress;
use crate::client::connection::{Connection, Traffic};
use crate::client::error::ClientError;
use crate::client::fetch::{FETCH_VERSION, FetchLimits, partitions, request};
use crate::client::offsets::{OffsetAt, list_offsets};
use kafka_protocol::messages::ApiKey;

/// Where a consumer stands in one partition, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub partition: usize,
    pub next_offset: i64,
    pub end_offset: i64,
}

/// What one thread reads from one broker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadPlan {
    pub topic: String,
    pub leader: BrokerAddress,
    pub positions: Vec<Position>,
    pub limits: FetchLimits,
}

/// The records of one partition in one answer: whole batches.
pub struct Fetched<'a> {
    pub partition: usize,
    /// From where the consumer stood to where it stands now; some may be gone.
    pub offsets: Range<i64>,
    pub records: &'a [u8],
}

/// Where the records of one partition lie in an answer.
struct Place {
    partition: usize,
    offsets: Range<i64>,
    bytes: Range<usize>,
}

pub struct Reader {
    connection: Connection,
    plan: ReadPlan,
    /// The answer that is being read through, and one that may arrive meanwhile.
    buffers: [Vec<u8>; 2],
    /// The request that has been sent.
    asked: Option<i32>,
}

impl Reader {
    pub fn open(plan: ReadPlan) -> Result<Self, ClientError> {
        let connection = Connection::open(&plan.leader.0)?;
        connection.versions().choose(
            connection.address(),
            ApiKey::Fetch,
            FETCH_VERSION,
            FETCH_VERSION,
        )?;
        Ok(Self {
            connection,
            plan,
            buffers: [Vec::new(), Vec::new()],
            asked: None,
        })
    }

    /// Where it stands; after an error, where to go on.
    pub fn positions(&self) -> &[Position] {
        &self.plan.positions
    }

    /// Where the plan's partitions are at `at`, as their leader says. Only between whole passes.
    pub fn offsets(
        &mut self,
        partitions: &[usize],
        at: OffsetAt,
    ) -> Result<BTreeMap<usize, Option<i64>>, ClientError> {
        assert!(self.asked.is_none(), "an answer is under way");
        list_offsets(&mut self.connection, &self.plan.topic, partitions, at)
    }

    /// What went over its connection since the last call.
    pub fn take_traffic(&mut self) -> Traffic {
        self.connection.take_traffic()
    }

    /// Goes back to these positions. Only between whole passes: when `step` returned false.
    pub fn rewind(&mut self, positions: Vec<Position>) {
        assert!(self.asked.is_none(), "an answer is under way");
        self.plan.positions = positions;
    }

    /// Takes one answer and hands out its records. False: every partition is at its end.
    pub fn step(&mut self, mut each: impl FnMut(Fetched)) -> Result<bool, ClientError> {
        if self.asked.is_none() {
            self.ask()?;
        }
        let Some(correlation_id) = self.asked.take() else {
            return Ok(false);
        };
        let mut buffer = mem::take(&mut self.buffers[0]);
        let size_bytes = self.connection.receive(&mut buffer)?;
        let fetched = self.take_answer(&buffer[..size_bytes], correlation_id)?;
        // If that fails, what has arrived is still handed out.
        let asked = self.ask();
        for place in fetched {
            each(Fetched {
                partition: place.partition,
                offsets: place.offsets,
                records: &buffer[place.bytes],
            });
        }
        self.buffers[0] = mem::replace(&mut self.buffers[1], buffer);
        asked.map(|()| true)
    }

    fn ask(&mut self) -> Result<(), ClientError> {
        let unfinished = self
            .plan
            .positions
            .iter()
            .filter(|position| position.next_offset < position.end_offset);
        let wanted: Vec<_> = unfinished
            .map(|position| (position.partition as i32, position.next_offset))
            .collect();
        if !wanted.is_empty() {
            self.asked = Some(self.connection.send(
                &request(&self.plan.topic, &wanted, &self.plan.limits),
                FETCH_VERSION,
            )?);
        }
        Ok(())
    }

    /// Moves the positions on and returns, for each partition that has records, where they lie in the answer.
    fn take_answer(
        &mut self,
        answer: &[u8],
        correlation_id: i32,
    ) -> Result<Vec<Place>, ClientError> {
        let mut fetched = Vec::new();
        let mut refused = None;
        let mut unreadable = None;
        let positions = &mut self.plan.positions;
        let error = partitions(answer, correlation_id, |part| {
            let Some(place) = positions
                .iter()
                .position(|position| position.partition as i32 == part.partition)
            else {
                return;
            };
            if !part.error.is_ok() {
                refused = Some(part.error);
                return;
            }
            let position = &mut positions[place];
            let stood_at = position.next_offset;
            let mut whole_bytes = 0;
            for batch in whole_batches(part.records) {
                position.next_offset = batch.next_offset();
                whole_bytes += batch.size_bytes();
            }
            if whole_bytes > 0 {
                let start = part.records.as_ptr() as usize - answer.as_ptr() as usize;
                fetched.push(Place {
                    partition: position.partition,
                    offsets: stood_at..position.next_offset,
                    bytes: start..start + whole_bytes,
                });
                // A broker fills its answer in the order asked: who was served goes to the back.
                let served = positions.remove(place);
                positions.push(served);
            } else if !part.records.is_empty() {
                unreadable = Some(format!(
                    "partition {} at offset {} holds no whole record batch",
                    part.partition, position.next_offset
                ));
            }
        })
        .map_err(|error| self.connection.protocol(format!("Fetch: {error}")))?;
        if let Some(code) = refused.or((!error.is_ok()).then_some(error)) {
            self.connection.refuse_error(ApiKey::Fetch, code.0, None)?;
        }
        match unreadable {
            Some(reason) => Err(self.connection.protocol(reason)),
            None => Ok(fetched),
        }
    }
}
