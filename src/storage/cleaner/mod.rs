//! Log compaction: of a log's sealed segments it keeps the latest record of each key.
//!
//! Owns: which segments are worth cleaning, the map from keys to offsets, what is kept of a batch, the cleaned files and how they take
//! the place of the old ones. Must never know: who reads the log, topics, when it is their turn; the shard says how fast and whether
//! to go on. Runs on: the core that owns the partition, in the queue for what may wait; what goes by file names runs on its blocking
//! threads. After a crash: each group of segments is the old one or the cleaned one (`swap`), and cleaning goes on from the last
//! `cleaner.checkpoint`.
//!
//! ```text
//! log start        first dirty offset            first uncleanable offset
//! | cleaned before | the keys here go into the map | too young, or active |
//! | <------------- rewritten, group by group ----> |
//! ```
//!
//! Rules, in one place:
//! - a record stays if no later one of its key was seen, and a tombstone until its delete horizon has passed (KIP-534);
//! - offsets never change: a batch keeps its base and its last offset, whatever is taken out of it;
//! - a batch that holds the last sequence of a producer stays, without records if need be, and so does the last batch of each
//!   segment: so a segment still ends where the next one starts, and recovery can tell a gap from a loss;
//! - markers of transactions stay; a batch whose records do not read stays as it is.

pub mod batch_filter;
pub mod checkpoint;
pub mod cleaned_file;
pub mod cleaning;
pub mod dirtiness;
pub mod offset_map;
pub mod pace;
pub mod segment_group;
pub mod segment_source;
pub mod swap;
