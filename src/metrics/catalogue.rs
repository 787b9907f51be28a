//! Every figure that a shard keeps, defined once: its name on the metrics page and what it means.

/// Defines an enum whose variants index an array of figures, with each one's exposed name and its meaning.
macro_rules! catalogue {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => ($exposed:literal, $help:literal),)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $help] $variant,)+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
            pub(super) const COUNT: usize = Self::ALL.len();

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $exposed,)+ }
            }

            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }

            #[inline]
            pub(super) fn index(self) -> usize {
                self as usize
            }
        }
    };
}

catalogue! {
    /// Counts that only go up.
    Counter {
        Ticks => ("ticks", "Times that this shard's periodic tick ran; one that stands still is stuck"),
        ConnectionsAccepted => ("connections_accepted", "Client connections that this shard accepted"),
        ConnectionsRefused => ("connections_refused", "Client connections closed at once because a limit was reached"),
        ConnectionsRejected => ("connections_rejected", "Connections closed because of what they sent: not Kafka, an unknown API or version, a lying length"),
        ReadPauses => ("read_pauses", "Times that a connection was not read because its, or the shard's, bytes in flight were at the limit"),
        MeshMessages => ("mesh_messages", "Messages sent to other shards"),
        MeshStalls => ("mesh_stalls", "Times that a message to another shard had to wait because the lane was full"),
        BatchesAppended => ("batches_appended", "Record batches appended to logs"),
        RecordsAppended => ("records_appended", "Records appended to logs"),
        DiskWriteBytes => ("disk_write_bytes", "Bytes written to segments, with padding and with pages written again"),
        DiskReadBytes => ("disk_read_bytes", "Bytes read from segments"),
        TailReadBytes => ("tail_read_bytes", "Bytes that fetches were served from memory"),
        SegmentsSealed => ("segments_sealed", "Segments that were finished and cut to their exact length"),
        OffsetCommits => ("offset_commits", "Offsets of consumer groups that were committed, one for each partition of a commit"),
        GroupRebalances => ("group_rebalances", "Generations that consumer groups have begun"),
        GroupRecordsSkipped => ("group_records_skipped", "Damaged or unreadable records of the topic of committed offsets that loading skipped"),
        ClockSteps => ("clock_steps", "Times that the wall clock was seen to jump, ahead or back"),
        CleanerRuns => ("cleaner_runs", "Logs that were compacted up to their first uncleanable offset"),
        CleanerFailures => ("cleaner_failures", "Compactions that failed; their logs stay as they were and are tried again"),
        CleanerReadBytes => ("cleaner_read_bytes", "Bytes that compaction read from segments"),
        CleanerWriteBytes => ("cleaner_write_bytes", "Bytes that compaction wrote to cleaned segments"),
        CleanerRecordsRemoved => ("cleaner_records_removed", "Records that compaction took out"),
        CleanerMs => ("cleaner_ms", "Milliseconds that compactions took, their waits included"),
        ShortageRetries => ("shortage_retries", "Steps that were tried again since the system was short of descriptors or of memory of the kernel"),
        DescriptorRefusals => ("descriptor_refusals", "Times that whoever wanted a segment file was told that descriptors are short"),
        DiskErrors => ("disk_errors", "Disk operations that failed or came back short"),
    }
}

catalogue! {
    /// What is so at this moment.
    Gauge {
        Connections => ("connections", "Open client connections"),
        RequestsInFlight => ("requests_in_flight", "Requests received and not yet answered"),
        RequestBytesInFlight => ("request_bytes_in_flight", "Bytes of requests received and not yet answered"),
        ReplyBytesInFlight => ("reply_bytes_in_flight", "Bytes of replies that are not sent yet, and that requests under way may bring"),
        MeshQueueMessages => ("mesh_queue_messages", "Messages to other shards that wait to be taken"),
        FetchesWaiting => ("fetches_waiting", "Fetches that wait for data"),
        AcksWaiting => ("acks_waiting", "Produce requests that wait for their write"),
        Partitions => ("partitions", "Partitions that this shard owns"),
        PartitionsNotOpen => ("partitions_not_open", "Partitions that this shard owns and could not open, on a full disk mostly; they answer KAFKA_STORAGE_ERROR and are tried again"),
        Groups => ("groups", "Consumer groups, those included that have nothing but committed offsets"),
        GroupMembers => ("group_members", "Members of consumer groups"),
        GroupBytes => ("group_bytes", "What consumer groups, their members and committed offsets take in memory, roughly"),
        GroupPartitionsLoading => ("group_partitions_loading", "Partitions of the topic of committed offsets whose groups are not loaded yet"),
        TailCacheBytes => ("tail_cache_bytes", "Memory that holds the tails of logs, written or not yet"),
        SegmentsOpen => ("segments_open", "Segments whose file is open"),
        FilesOpen => ("files_open", "Open files of logs and indexes"),
        DiskBytes => ("disk_bytes", "Bytes that this shard's partitions take on disk"),
        CleanerDirtyPercentMax => ("cleaner_dirty_percent_max", "The largest share of a compacted log that is not yet compacted, in percent, when the cleaner last looked"),
        DirectIo => ("direct_io", "1 if O_DIRECT is really on for this shard's segments, 0 if the file system switched it off"),
        ClockHeldMs => ("clock_held_ms", "Milliseconds that the wall clock has jumped ahead and that nothing which expires by age follows yet"),
        LogDirectoriesOffline => ("log_directories_offline", "Log directories that an I/O error took offline"),
    }
}

catalogue! {
    /// Why segments leave a log.
    Deletion {
        RetentionMs => ("retention_ms", "Their newest record was too old"),
        RetentionBytes => ("retention_bytes", "The log was large enough without them"),
        DeleteRecords => ("delete_records", "They lay below the log start offset"),
        DeletedTopic => ("deleted_topic", "Their topic was deleted"),
    }
}

catalogue! {
    /// Durations that belong to no request.
    Latency {
        DiskWrite => ("disk_write", "From the submission of a segment write to its completion"),
        DiskRead => ("disk_read", "From the submission of a segment read to its completion"),
        GroupLoad => ("group_load", "Reading one partition of the topic of committed offsets at start"),
        Fdatasync => ("fdatasync", "From the submission of an fdatasync to its completion"),
    }
}

catalogue! {
    /// The parts of a request's time.
    Stage {
        Queue => ("queue", "From the last byte of the request to the start of its execution on the shard that owns the partition"),
        Execute => ("execute", "Computing: decoding, validating, appending or looking up"),
        Disk => ("disk", "Waiting for a segment write or read"),
        Wait => ("wait", "Waiting as the request asked: for min_bytes, or for other replicas"),
        Total => ("total", "From the last byte of the request to the last byte of its reply handed to the socket"),
    }
}
