//! The memory that one shard may take for what grows with its load. Where it comes from is decided once for the whole process.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Blocks read from disk. Over it the oldest block is dropped.
    pub read_blocks_bytes: usize,
    /// Free chunks that are kept; more goes back to the allocator.
    pub free_chunks_bytes: usize,
    /// Free receive buffers that are kept.
    pub free_buffers_bytes: usize,
    /// Requests that were received and not yet answered. At the limit connections are not read.
    pub request_bytes: usize,
    /// Replies that are not sent yet.
    pub reply_bytes: usize,
    /// Consumer groups. At the limit a commit or a join that needs more is refused.
    pub group_bytes: usize,
    /// What one batch may take while it is inflated (`InflateBounds`); more is refused to a producer.
    pub inflate_window_bytes: usize,
    /// Keys of the log that is being compacted; more keys take several passes.
    pub cleaner_key_bytes: usize,
}
