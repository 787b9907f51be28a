//! Every bound of the product that is not a setting, with what happens at it.

/// Kafka's bound of a topic name. Longer: INVALID_TOPIC_EXCEPTION.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// O_DIRECT's unit: every file position, length and buffer address of a segment write is a multiple.
pub const PAGE_BYTES: usize = 4096;

/// The largest chunk: the unit in which the tail of a log is filled, written, cached and sent. A fuller tail
/// goes on in the next chunk.
pub const CHUNK_BYTES_MAX: usize = 512 * 1024;

/// How much memory for chunks is made resident before it is asked for: as much as has been used so far, between these. Beyond it, and
/// where the thread that does it gets no CPU, who uses the memory waits for the kernel to clear it.
pub const TOUCHED_AHEAD_BYTES_MIN: usize = 32 * 1024 * 1024;
pub const TOUCHED_AHEAD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The smallest chunk but for those of one page; sizes between are powers of two.
pub const CHUNK_BYTES_MIN: usize = 16 * 1024;

/// How many writes one partition has in flight. At the limit the tail keeps filling chunks, and those writes merge.
pub const WRITES_IN_FLIGHT_PER_PARTITION_MAX: usize = 4;

/// Batches that are remembered per idempotent producer and partition (Kafka's number). An older repeat is refused with
/// OUT_OF_ORDER_SEQUENCE_NUMBER, or DUPLICATE_SEQUENCE_NUMBER where it is surely old.
pub const PRODUCER_BATCHES_REMEMBERED: usize = 5;

/// The largest record batch header, which is also the whole of a batch's fixed part.
pub const RECORD_BATCH_HEADER_BYTES: usize = 61;

/// Records of one refused batch that the answer names; what else is wrong with it is not said.
pub const RECORD_ERRORS_MAX: usize = 1_000;

/// Messages waiting from one shard to another. At the limit the sender dispatches no request, and stops reading from its connections.
pub const MESH_QUEUE_MESSAGES_MAX: usize = 1024;

/// Requests of one connection that were dispatched and not yet answered. At the limit the connection is not read.
pub const REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX: usize = 1024;

/// Bytes of requests of one connection that were received and not yet answered. At the limit the connection is not read.
/// One request may be larger (`socket.request.max.bytes`); it is then alone.
pub const REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX: usize = 32 * 1024 * 1024;

/// The same over all connections of a shard. At the limit a connection is still read that has nothing under way, as far as its request fits
/// into the smallest buffer; and one at a time of which a part of a larger request has come.
pub const REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX: usize = 256 * 1024 * 1024;

/// Requests of all connections of a shard that were dispatched and not yet answered. At the limit a connection has one under way.
pub const REQUESTS_IN_FLIGHT_PER_SHARD_MAX: usize = 64 * 1024;

/// Bytes of replies to one connection that are not sent yet, or that its requests under way may bring. At the limit no more of its requests
/// are dispatched. One reply may be larger; it is then alone.
pub const REPLY_BYTES_PER_CONNECTION_MAX: usize = 64 * 1024 * 1024;

/// The same over all connections of a shard. At the limit requests wait whose reply can be large (a fetch, all topics, all offsets of a
/// group); connections that do not take their replies are closed after `socket.request.timeout.ms`.
pub const REPLY_BYTES_PER_SHARD_MAX: usize = 256 * 1024 * 1024;

/// What a fetch counts as at the least while it reads and as soon as it has brought any record, since a few bytes keep the memory that they
/// were read into. Also what is assumed of another reply whose size nobody knows before it is made.
pub const REPLY_GRANT_BYTES_MIN: usize = 1024 * 1024;

/// What one partition of a fetch counts as at the least if it has brought any record.
pub const REPLY_PARTITION_BYTES_MIN: usize = 64 * 1024;

/// The most partitions one topic may have. More: INVALID_PARTITIONS.
pub const PARTITIONS_PER_TOPIC_MAX: i32 = 100_000;

/// Receive buffers come in powers of two from this size ...
pub const RECV_BUF_BYTES_MIN: usize = 64 * 1024;

/// ... up to this one. A larger request gets a buffer of exactly its size, which is not kept.
pub const RECV_BUF_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Free chunks that one shard keeps at hand; more goes back to the allocator.
pub const CHUNK_POOL_FREE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Buffers of one pool on their way home from other cores. One more is freed instead of kept.
pub const POOL_RETURNS_MAX: usize = 1024;

/// How often every executor wakes although it has nothing to do, which is the longest that an executor sleeps on a runnable task (once in
/// about a million turns). A wake costs about 100 us of a core: 10 ms are 1 % of it, 2 ms would be 3 %.
pub const TICK_MS: u64 = 10;

/// How often executors are looked after whose tick has stopped.
pub const PULSE_MS: u64 = 50;

/// The time slice after which a task that asks gives way, and the longest that a busy executor lets completions wait.
pub const PREEMPT_AFTER_MS: u64 = 1;

/// The first turn of an executor, which puts its guards against sleeping for ever in place, is never preempted within this time.
pub const START_WITHIN_MS: u64 = 60_000;

/// The time slice of the one task of a tool or test. Its first turn is lost if it does not come within it.
pub const TOOL_PREEMPT_AFTER_MS: u64 = 50;

/// Entries of each io_uring submission queue. At the limit submissions wait for the next turn.
pub const RING_DEPTH: usize = 256;

/// Threads of one executor for calls that block. Calls beyond these queue.
pub const BLOCKING_THREADS_PER_EXECUTOR: usize = 2;

/// The stack of an executor's thread; only what is touched takes memory.
pub const EXECUTOR_STACK_BYTES: usize = 8 * 1024 * 1024;

/// Memory that each executor registers with its rings for disk reads. Reads beyond it use plain memory.
pub const READ_MEMORY_BYTES_PER_EXECUTOR: usize = 8 * 1024 * 1024;

/// Disk reads of one executor whose bytes are still held somewhere. Beyond it the bytes are copied out of the read buffer, so
/// that the way home of these buffers can never overflow.
pub const READ_BUFFERS_OUT_MAX: usize = 1024;

/// Batches on one lane of the mesh. At the limit what was pushed stays with its sender and joins the next batch.
pub const MESH_LANE_BATCHES_MAX: usize = 64;

/// Messages that one member of the mesh has not taken from another at which no new work may be pushed: far above what a sender that respects
/// `MESH_QUEUE_MESSAGES_MAX` can reach, so reaching it is a bug and ends the process. Answers have no such bound: there are as many as
/// requests under way.
pub const MESH_MESSAGES_UNTAKEN_MAX: usize = 256 * 1024;

/// Connections that one listener holds before they are accepted. Beyond it the kernel lets clients try again.
pub const ACCEPT_BACKLOG: i32 = 1024;

/// Silence on a connection after which the kernel asks whether the peer still lives.
pub const TCP_KEEPALIVE_AFTER_S: u64 = 300;
/// Idempotent producers that one partition remembers. At the limit the least recently written sixteenth is forgotten, as if
/// `producer.id.expiration.ms` had passed: those may go on with any sequence, and a repeat of theirs is appended again.
pub const PRODUCERS_PER_PARTITION_MAX: usize = 10_000;

/// Headers of one record, which are looked through at once: some 0.3 ms. More: INVALID_RECORD.
pub const RECORD_HEADERS_MAX: usize = 100_000;

/// What one batch may inflate to where the broker must inflate it. More: MESSAGE_TOO_LARGE to a producer, an error in a tool.
pub const INFLATED_BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The buffer between a codec and who reads the records.
pub const INFLATE_BUFFER_BYTES: usize = 16 * 1024;

/// What a read of inflated data counts as at the least, in bytes that are inflated: each of many small gzip members or zstd frames has a
/// decoder of its own, for some microseconds.
pub const INFLATE_READ_WORK_BYTES: usize = 4 * 1024;

/// How many reads of inflated data may give less than `INFLATE_READ_WORK_BYTES` though there is room for more, and one further for as many
/// bytes as that. More: CORRUPT_MESSAGE. No client makes such small parts, and opening them would cost thousands of times what they hold.
pub const INFLATE_SHORT_READS_MAX: usize = 64;

/// How many gzip members, zstd frames or snappy blocks of a batch may hold nothing. More: CORRUPT_MESSAGE.
pub const EMPTY_PARTS_MAX: usize = 16;

/// The piece of compressed data that a decoder takes at a time. Blocks that hold nothing are as small as 10 bits (gzip), 3 bytes (zstd) or
/// 4 bytes (lz4), so a piece costs up to half a millisecond.
pub const INFLATE_INPUT_PIECE_BYTES: usize = 16 * 1024;

/// What a gzip decoder takes before it gives something; the header of a member may be that long. More: CORRUPT_MESSAGE.
pub const GZIP_INPUT_WITHOUT_OUTPUT_BYTES_MAX: usize = 68 * 1024;

/// The same for zstd, whose largest block is 128 KiB.
pub const ZSTD_INPUT_WITHOUT_OUTPUT_BYTES_MAX: usize = 160 * 1024;

/// How many reads an lz4 decoder makes before it gives something: it takes block by block, and the largest block is 4 MiB. More:
/// CORRUPT_MESSAGE.
pub const LZ4_READS_WITHOUT_OUTPUT_MAX: usize = 1_024;

/// What a byte that a decoder takes counts as at the least, in bytes that are inflated: a block that holds nothing costs some 30 ns.
pub const INFLATE_INPUT_WORK: usize = 4;

/// How much a reader of stored records inflates of a large one before others may run.
pub const INFLATE_STEP_BYTES: usize = 256 * 1024;

/// What the checks of one produce request's batches cost at once, in bytes of a CRC: less than a millisecond. What costs more, or cannot be
/// known before, as with compressed batches, is checked in steps; the batches of its partition that come after it wait for it.
pub const CHECKED_AT_ONCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The first step of such a check, in bytes of a CRC or bytes that are inflated: less than a millisecond with the slowest codec.
pub const CHECK_FIRST_STEP_BYTES: usize = 256 * 1024;

/// Every further step. After each others have their turn, if the time slice is over.
pub const CHECK_STEP_BYTES: usize = 64 * 1024;

/// Checks of one shard under way that take more than their first step, and lookups by time too. Each holds the window of a codec, a lookup
/// also its largest record. At the limit others wait for their turn, a check with nothing but the bytes that came.
pub const SLOW_CHECKS_PER_SHARD_MAX: usize = 2;

/// How many times the window of a codec a batch may inflate to that compaction writes anew, since it holds what it keeps. A batch that
/// inflates to more stays as it is; where memory is plenty none does.
pub const CLEANED_BATCH_WINDOWS: usize = 4;

/// What everything that inflates in one shard holds at the most, in windows: checks and lookups as above, and the one compaction at a time
/// with its window, its largest record and what it keeps.
pub const INFLATE_WINDOWS_PER_SHARD: usize =
    3 * SLOW_CHECKS_PER_SHARD_MAX + 2 + CLEANED_BATCH_WINDOWS;

/// How much compaction compresses at a time: half a millisecond with the slowest codec.
pub const COMPRESS_STEP_BYTES: usize = 32 * 1024;

/// The window of a zstd frame, which is how far back its copies may reach: 128 MiB, as every client's decoder has it unless told otherwise, so
/// that what is refused here no consumer could read. Larger: CORRUPT_MESSAGE. Of a window only what was inflated is held.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Structs, strings and unknown tagged fields in one request. Each takes more memory than bytes on the wire, so this bounds what a request costs
/// beyond its own size. More: the connection is closed.
pub const REQUEST_ELEMENTS_MAX: usize = 200_000;

/// One more than the highest core number that the setting `cores` may name (the kernel's own bound of a CPU set).
pub const CORES_MAX: usize = 1024;

/// Partitions of one broker, over all topics. More: INVALID_PARTITIONS.
pub const PARTITIONS_PER_BROKER_MAX: usize = 100_000;

/// Producer ids that are set aside with one write of the metadata log (Kafka's number). A restart leaves the rest unused.
pub const PRODUCER_ID_BLOCK_COUNT: i64 = 1000;

/// The value of one setting, as written: what a string of the wire holds (a 16-bit length). Longer: INVALID_CONFIG.
pub const SETTING_VALUE_BYTES_MAX: usize = i16::MAX as usize;

/// One batch of metadata records, archived. A larger change is refused.
pub const METADATA_BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Zeros that the metadata log holds ready behind its end, so that topics can still be deleted on a full disk.
pub const METADATA_RESERVE_BYTES: u64 = 256 * 1024;

/// API keys from 0 up that are counted each on its own; higher and negative ones share the last slot.
pub const API_KEYS_COUNTED_MAX: usize = 128;

/// Error codes from -1 up that are counted each on its own; higher ones share the last slot.
pub const ERROR_CODES_COUNTED_MAX: usize = 160;

/// Connections to the admin listener at a time. At the limit it accepts no more; further ones wait in the kernel's backlog.
pub const ADMIN_CONNECTIONS_MAX: usize = 64;

/// How long one connection to the admin listener may last, whatever it does. Then it is closed.
pub const ADMIN_CONNECTION_LIFETIME_MS: u64 = 10_000;
/// The first step of the space prepared ahead of a segment's end; further steps double.
pub const PREPARE_STEP_BYTES_MIN: u64 = 64 * 1024;

/// The largest step of the space prepared ahead.
pub const PREPARE_STEP_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The unit in which a segment is read from disk.
pub const READ_BLOCK_BYTES: usize = 1024 * 1024;

/// Batch headers and pieces of memory that one read looks at before it lets others run: some 0.2 ms. The read goes on after them.
pub const READ_STEPS_PER_SLICE: usize = 4096;

/// Steps that looking up one partition of a read counts as.
pub const READ_STEPS_PER_ITEM: usize = 4;

/// Partitions of one request that are looked at before others may run, where the request is not a read.
pub const READ_ITEMS_PER_SLICE: usize = 1024;

/// Pieces of memory in the answer to one fetch. At the limit it ends there, after a whole batch, and the client asks again. A
/// piece of a few bytes holds on to a whole page, so this also bounds what small batches pin.
pub const READ_PIECES_MAX: usize = 16 * 1024;

/// Bytes of a batch read from the disk whose checksum is computed before others may run.
pub const READ_CHECKED_BYTES_PER_SLICE: usize = 256 * 1024;

/// What a fetch response may take besides `max_bytes` of records: clients (librdkafka) leave so much room for everything else in it. What
/// the heads of many partitions take beyond it is taken off the records.
pub const FETCH_OVERHEAD_BYTES: usize = 512;

/// Reads from the disk that tell how many segments are read at present. More segments than that share what is kept as if they were so many.
pub const RECENT_READS_MAX: usize = 1024;

/// Batches whose header promises a later time than any record of theirs that reads, which a question for the newest record meets before it is
/// answered with none.
pub const MISLEADING_BATCHES_MAX: usize = 8;

/// Blocks fetched ahead of a reader that goes on where it was.
pub const READ_AHEAD_BLOCKS: u64 = 3;

/// Memory of one shard for blocks read from disk; over it the oldest block is dropped.
pub const READ_BLOCKS_BYTES_MAX_PER_SHARD: usize = 64 * 1024 * 1024;

/// Partitions that one shard syncs at a time; a larger round goes on in groups of this size.
pub const FDATASYNCS_IN_FLIGHT_PER_SHARD_MAX: usize = 64;

/// Fetches waiting on one partition from which those that have ended are swept out. Waiters are bounded by the connections.
pub const FETCH_WAITERS_SWEEP_COUNT: usize = 64;

/// How often a shard looks after its partitions.
pub const HOUSEKEEPING_MS: u64 = 100;

/// A partition that was not appended to for this long gives back its prepared space, chunks and open files.
pub const IDLE_AFTER_MS: u64 = 10_000;

/// Checkpoints that one shard starts in one tick; the others wait for the next.
pub const CHECKPOINTS_PER_TICK_MAX: usize = 8;

/// Bytes of one shard's logs that no checkpoint covers, which is what a recovery reads. Above it the partition that has most of them
/// is checkpointed, whatever its last checkpoint's age.
pub const UNCHECKPOINTED_BYTES_PER_SHARD_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// How long a checkpoint that nobody waits for leaves the fdatasync to `flush.ms`. After that it asks for one.
pub const CHECKPOINT_AWAITS_FLUSH_MS: u64 = 30_000;

/// The most bytes that a connection lets arrive before its shard is woken for them.
pub const WAKE_UP_BYTES_MAX: usize = 256 * 1024;

/// A part of what is under way that is smaller is not waited for: the connection is woken at the first byte.
pub const WAKE_UP_PART_BYTES_MIN: usize = 1024;

/// Frames up to this size share a receive buffer, and one read takes as much; a larger frame is read into a buffer of its own.
pub const SHARED_BUFFER_FRAME_BYTES_MAX: usize = 64 * 1024;
/// What recovery reads of a segment at a time; also all the memory that a scan takes.
pub const SCAN_BUFFER_BYTES: usize = 1024 * 1024;

/// Messages from threads that run no executor, waiting for a shard. At the limit the thread waits.
pub const FOREIGN_MESSAGES_MAX: usize = 1024;

/// How long after one attempt to open the partitions that could not be opened the next one follows.
pub const PENDING_PARTITIONS_RETRY_MS: u64 = 1_000;

/// How long a stray directory waits that could not be looked into.
pub const STRAY_RETRY_MS: u64 = 10_000;

/// Stray directories that the line about them names; of the others it says how many there are.
pub const STRAYS_NAMED_MAX: usize = 8;

/// How long the controller waits for the shards to follow a change before it answers that it was not done in time (REQUEST_TIMED_OUT).
/// The change is stored by then, and a shard that is late follows it all the same, in its turn.
pub const FOLLOW_METADATA_MS: u64 = 60_000;

/// How long the controller waits for a shard before it says in the log that it does, each time.
pub const FOLLOW_METADATA_TELL_MS: u64 = 5_000;

/// How long a stopping broker keeps connections open for answers to leave.
pub const DRAIN_MS: u64 = 2_000;

/// The part of the descriptors that are to be divided that client connections may have at most, in percent; segment files have the rest.
pub const CONNECTION_DESCRIPTORS_PERCENT_MAX: u64 = 40;

/// How long whoever wants a segment file waits for a descriptor. After that it is told that they are short: a read is refused with
/// KAFKA_STORAGE_ERROR, a batch that is in the log already waits on, and no further one is taken.
pub const OPEN_FILE_WAIT_MS: u64 = 5_000;

/// How often it looks again.
pub const OPEN_FILE_RETRY_MS: u64 = 50;

/// How long a step that failed for a shortage of the system's (descriptors, memory of the kernel) waits before it is tried again.
pub const SHORTAGE_RETRY_MS: u64 = 100;

/// At most one line in this time tells that descriptors are short.
pub const SHORTAGE_LOG_INTERVAL_MS: u64 = 10_000;

/// How long a listener accepts nothing after the system was short of something for it.
pub const ACCEPT_PAUSE_MS: u64 = 100;

/// Deleted or replaced segment files that a shard remembers, so that a read that was planned before looks elsewhere: some 4 MB.
/// Behaviour at the limit: the one that was retired longest ago is forgotten, and a read that still wants it fails.
pub const RETIRED_FILES_MAX: usize = 65_536;

/// Receive buffers that one shard keeps for reuse.
pub const RECV_POOL_BYTES_PER_SHARD: usize = 64 * 1024 * 1024;

/// How often connections are looked over for those that take too long.
pub const SWEEP_MS: u64 = 250;

/// At most one line in this time tells of connections that were closed for what they sent.
pub const REJECTION_LOG_INTERVAL_MS: u64 = 1_000;

/// What a tool reads of one index file at most: above what any segment below 2 GiB has.
pub const INDEX_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// How long a start waits for the writes of a process that has ended. Longer: the start fails.
pub const DIR_LOCK_WAIT_FOR_DEAD_OWNER_MS: u64 = 30_000;

/// How long a start waits for a process that lives and holds the data directory, since it may just have been killed.
pub const DIR_LOCK_WAIT_FOR_LIVING_OWNER_MS: u64 = 1_000;

/// How often either looks again.
pub const DIR_LOCK_RETRY_MS: u64 = 10;

/// By how much a file that is removed is cut at a time, and how long the disk then rests: 200 MB/s for each file.
pub const REMOVAL_STEP_BYTES: u64 = 1024 * 1024;
pub const REMOVAL_STEP_MS: u64 = 5;

/// How long a log is left alone whose compaction failed.
pub const CLEANING_RETRY_MS: u64 = 10_000;

/// What a shard's cleaner may read and write in a second while clients are served, at the least; `storage::cleaner::pace` raises it
/// where that does not keep up.
pub const CLEANING_SERVING_BYTES_PER_SECOND_MIN: f64 = 32e6;

/// By how much the file of a cleaned segment grows at a time.
pub const CLEANED_SPACE_STEP_BYTES: u64 = 4 * 1024 * 1024;

/// How long clients count as served after the last thing that one asked.
pub const CLEANING_SERVING_MS: u64 = 250;

/// The share of the time that the cleaner is at work above which it gets faster, and below which it gets slower, in percent.
pub const CLEANING_BUSY_PERCENT_MAX: f64 = 80.0;
pub const CLEANING_BUSY_PERCENT_MIN: f64 = 35.0;

/// How long the cleaner is at work, without a rest, before it gets faster, and then faster again.
pub const CLEANING_ROUND_MS_MAX: u64 = 10_000;

/// How often a shard adds up what its partitions take on disk.
pub const DISK_BYTES_MS: u64 = 5_000;

/// Written bytes of one shard that no fdatasync covers, above which one is begun before `flush.ms` is over. A device keeps writes waiting
/// while it empties its cache, for as long as there is something in it.
pub const SYNC_AHEAD_BYTES: u64 = 256 * 1024;

/// Between two syncs of a shard that are begun before `flush.ms` is over.
pub const SYNC_AHEAD_INTERVAL_MS: u128 = 4;

/// The largest batch that the broker writes for itself, which is what the metadata of one group, or the commits of one turn, may take. A
/// larger group's member is refused with GROUP_MAX_SIZE_REACHED; commits beyond it go into the next batch.
pub const OWN_BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Commits and group metadata of one turn go into one batch up to this size; what is more begins another.
pub const GROUP_BATCH_BYTES: usize = 256 * 1024;

/// What a record takes beside its key and value at most: lengths, deltas, attributes, and no headers.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 32;

/// The shortest wait of the timer of groups' deadlines.
pub const GROUP_TICK_MIN_MS: u64 = 1;

/// How long loading groups waits after a read that the disk failed.
pub const GROUP_LOAD_RETRY_MS: u64 = 1_000;

/// How long replies may still be sent on a connection whose client sends nothing more. What is then not answered never is.
pub const REPLIES_AFTER_END_MS: u64 = 30_000;

/// How often a shard adds up its groups and their members.
pub const GROUP_FIGURES_MS: u64 = 1_000;
/// Bytes of a group's, an instance's, a client's or a protocol's name. A longer group id: INVALID_GROUP_ID. Another: INVALID_REQUEST.
pub const GROUP_NAME_BYTES_MAX: usize = 1024;

/// Bytes that one member of a group may bring for its assignors, all together. More: INVALID_REQUEST.
pub const GROUP_MEMBER_METADATA_BYTES_MAX: usize = 1024 * 1024;

/// Assignors that one member of a group may name. More: INVALID_REQUEST.
pub const GROUP_MEMBER_PROTOCOLS_MAX: usize = 64;

/// Ids that were given to clients of one group who have not come back with them. At the limit a new one: GROUP_MAX_SIZE_REACHED.
pub const GIVEN_MEMBER_IDS_PER_GROUP_MAX: usize = 10_000;

/// How long a new member may wait for its first rebalance, since nothing tells whether its client still lives. Then its join is refused
/// with UNKNOWN_MEMBER_ID, and it may join again (Kafka's time).
pub const NEW_MEMBER_JOIN_MS_MAX: u64 = 300_000;

/// Groups of one partition of `__consumer_offsets`, those included that only hold offsets. At the limit a join to a new one:
/// GROUP_MAX_SIZE_REACHED, a commit to a new one: INVALID_COMMIT_OFFSET_SIZE.
pub const GROUPS_PER_PARTITION_MAX: usize = 10_000;

/// Memory for the groups of one partition of `__consumer_offsets`: about 1 KiB a member and 200 bytes a committed offset, and what they
/// bring. At the limit whoever wants more of it has the same errors; who is there already can go on.
pub const GROUP_BYTES_PER_PARTITION_MAX: usize = 64 * 1024 * 1024;

/// Partitions that one group has committed offsets for. At the limit a commit to a further one: INVALID_COMMIT_OFFSET_SIZE.
pub const OFFSETS_PER_GROUP_MAX: usize = 100_000;

/// Groups that a change of all of them takes at a time; between these others may run.
pub const GROUPS_PER_SLICE: usize = 100;

/// Groups that are looked through at a time for offsets that have expired.
pub const GROUPS_SWEPT_PER_TICK_MAX: usize = 100;

/// How often full memory for groups is looked through for what has expired, whatever `offsets.retention.check.interval.ms` says.
pub const GROUP_SWEEP_WHEN_FULL_MS: u64 = 10_000;

/// What a client believes of the size of a response. The greeting of another protocol reads as one of a gigabyte; more is an error.
pub const RESPONSE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Structs, strings and unknown tagged fields in one response that a client decodes: those of a million partitions. More is an error.
pub const RESPONSE_ELEMENTS_MAX: usize = 4_000_000;

/// The longest line that `corelog produce` takes; as much as a broker takes of a request (`socket.request.max.bytes`). Longer: it ends with an
/// error that has the line's number.
pub const PRODUCE_LINE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Lines that `corelog produce` has read and not yet put into a batch. At the limit it stops reading.
pub const PRODUCE_LINES_AHEAD_MAX: usize = 1024;
/// How often the log directory's file system is looked at.
pub const DISK_GUARD_MS: u64 = 500;

/// How far below a mark of the disk guard the used share must fall before what was refused is taken again.
pub const DISK_GUARD_HYSTERESIS_RATIO: f64 = 0.01;

/// How often what is due is looked for while the disk guard refuses produce, if `log.retention.check.interval.ms` is longer.
pub const GUARDED_RETENTION_MS: u64 = 5_000;

/// How long a checkpoint that nobody waits for, and that finds no room, waits before it is tried again.
pub const CHECKPOINT_RETRY_MS: u64 = 1_000;

/// How long a deletion that finds no room for its checkpoint waits before it tries again.
pub const DELETION_RETRY_MS: u64 = 1_000;

/// How far the wall clock may go apart from the monotonic one between two looks, which are `HOUSEKEEPING_MS` apart. More is a jump.
pub const CLOCK_STEP_MS_MAX: i64 = 60_000;
