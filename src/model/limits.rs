//! Every bound of the product that is not a setting, with what happens at it.

/// Kafka's bound of a topic name. Longer: INVALID_TOPIC_EXCEPTION.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// O_DIRECT's unit: every file position, length and buffer address of a segment write is a multiple.
pub const PAGE_BYTES: usize = 4096;

/// The largest chunk: the unit in which the tail of a log is filled, written, cached and sent. A fuller tail
/// goes on in the next chunk.
pub const CHUNK_BYTES_MAX: usize = 512 * 1024;

/// The smallest chunk; sizes between are powers of two.
pub const CHUNK_BYTES_MIN: usize = 16 * 1024;

/// How many writes one partition has in flight. At the limit the tail keeps filling chunks, and those writes merge.
pub const WRITES_IN_FLIGHT_PER_PARTITION_MAX: usize = 4;

/// Batches that are remembered per idempotent producer and partition (Kafka's number). An older repeat is refused with
/// OUT_OF_ORDER_SEQUENCE_NUMBER, or DUPLICATE_SEQUENCE_NUMBER where it is surely old.
pub const PRODUCER_BATCHES_REMEMBERED: usize = 5;

/// The largest record batch header, which is also the whole of a batch's fixed part.
pub const RECORD_BATCH_HEADER_BYTES: usize = 61;

/// Messages waiting from one shard to another. At the limit the sender stops reading from its connections.
pub const MESH_QUEUE_MESSAGES_MAX: usize = 1024;

/// Requests of one connection that were dispatched and not yet answered. At the limit the connection is not read.
pub const REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX: usize = 128;

/// Bytes of requests of one connection that were received and not yet answered. At the limit the connection is not read.
/// One request may be larger (`socket.request.max.bytes`); it is then alone.
pub const REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX: usize = 32 * 1024 * 1024;

/// The same over all connections of a shard.
pub const REQUEST_BYTES_IN_FLIGHT_PER_SHARD_MAX: usize = 256 * 1024 * 1024;

/// The most partitions one topic may have. More: INVALID_PARTITIONS.
pub const PARTITIONS_PER_TOPIC_MAX: i32 = 100_000;

/// Idempotent producers that one partition remembers. At the limit the least recently written sixteenth is forgotten, as if
/// `producer.id.expiration.ms` had passed: those may go on with any sequence, and a repeat of theirs is appended again.
pub const PRODUCERS_PER_PARTITION_MAX: usize = 10_000;

/// What one batch may inflate to where the broker must inflate it. More: MESSAGE_TOO_LARGE to a producer, an error in a tool.
pub const INFLATED_BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The buffer between a codec and who reads the records.
pub const INFLATE_BUFFER_BYTES: usize = 16 * 1024;

/// Structs, strings and unknown tagged fields in one request. Each takes more memory than bytes on the wire, so this bounds what a request costs
/// beyond its own size. More: the connection is closed.
pub const REQUEST_ELEMENTS_MAX: usize = 200_000;

/// One more than the highest core number that the setting `cores` may name (the kernel's own bound of a CPU set).
pub const CORES_MAX: usize = 1024;

/// Partitions of one broker, over all topics. More: INVALID_PARTITIONS.
pub const PARTITIONS_PER_BROKER_MAX: usize = 100_000;

/// Producer ids that are set aside with one write of the metadata log (Kafka's number). A restart leaves the rest unused.
pub const PRODUCER_ID_BLOCK_COUNT: i64 = 1000;

/// The value of one setting, as written. Longer: INVALID_CONFIG.
pub const SETTING_VALUE_BYTES_MAX: usize = 32 * 1024;

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
