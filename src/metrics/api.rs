use super::catalogue::Stage;
use super::histogram::LatencyHistogram;
use super::single_writer::SingleWriterU64;
use crate::model::limits::ERROR_CODES_COUNTED_MAX;

/// The first error code that is counted: Kafka's UNKNOWN_SERVER_ERROR.
const ERROR_CODE_FIRST: i16 = -1;

/// The figures of one Kafka API on one shard. About 45 KiB, so a shard has it only for APIs that were asked for.
#[derive(Debug)]
pub struct ApiFigures {
    requests: SingleWriterU64,
    bytes_in: SingleWriterU64,
    bytes_out: SingleWriterU64,
    stages: [LatencyHistogram; Stage::COUNT],
    /// By error code from -1 up; the last also holds all higher ones.
    errors: [SingleWriterU64; ERROR_CODES_COUNTED_MAX],
}

impl Default for ApiFigures {
    fn default() -> Self {
        Self {
            requests: SingleWriterU64::default(),
            bytes_in: SingleWriterU64::default(),
            bytes_out: SingleWriterU64::default(),
            stages: Default::default(),
            errors: std::array::from_fn(|_| SingleWriterU64::default()),
        }
    }
}

impl ApiFigures {
    #[inline]
    pub(super) fn record_request(&self, bytes_in: usize, bytes_out: usize, total_ns: u64) {
        self.requests.add(1);
        self.bytes_in.add(bytes_in as u64);
        self.bytes_out.add(bytes_out as u64);
        self.record_stage(Stage::Total, total_ns);
    }

    #[inline]
    pub(super) fn record_stage(&self, stage: Stage, ns: u64) {
        self.stages[stage.index()].record(ns);
    }

    pub(super) fn record_error(&self, error_code: i16) {
        let index =
            usize::try_from(i32::from(error_code) - i32::from(ERROR_CODE_FIRST)).unwrap_or(0);
        self.errors[index.min(ERROR_CODES_COUNTED_MAX - 1)].add(1);
    }

    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    pub fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    pub fn bytes_out(&self) -> u64 {
        self.bytes_out.get()
    }

    pub fn stage(&self, stage: Stage) -> &LatencyHistogram {
        &self.stages[stage.index()]
    }

    /// The error codes that were answered, each with its count.
    pub fn errors(&self) -> impl Iterator<Item = (i16, u64)> + '_ {
        let codes = ERROR_CODE_FIRST..;
        codes
            .zip(self.errors.iter().map(SingleWriterU64::get))
            .filter(|&(_, count)| count > 0)
    }
}
