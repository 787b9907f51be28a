//! A partition's directory: made, and told from what else may lie under its name.
//!
//! ```text
//! nothing --mkdir--> empty --partition.metadata--> with its id --fsync of the log directory--> hosted
//! ```
//!
//! A crash leaves one of these, and each is told from the others by what lies in the directory. So a directory of a deleted topic is
//! never taken for one of the topic that has its name now.

use std::io;
use std::path::{Path, PathBuf};

use crate::io::fs;
use crate::model::{PartitionIndex, TopicId, TopicName, TopicPartition};

use super::atomic_file;
use super::checkpoint::CHECKPOINT_FILE;
use super::checkpoint::PartitionCheckpoint;
use super::fault_point;
use super::file_error::FileError;
use super::leader_epochs::LEADER_EPOCHS_FILE;
use super::partition_dir::{PartitionDirName, RemovedDirName};
use super::partition_metadata::PARTITION_METADATA_FILE;
use super::partition_metadata::PartitionMetadata;
use super::segment_name::{SWAP_SUFFIX, SegmentFileName, is_leftover};

/// What the files in a directory with a partition's name say of whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// There is no such directory.
    Absent,
    /// Nothing is in it, but perhaps the unfinished `partition.metadata` of one that was being made.
    Empty,
    /// `partition.metadata` names the topic.
    Topic(TopicId),
    /// It was made before directories had ids. The checkpoint names the topic, if there is one.
    WithoutId(Option<TopicId>),
    /// Its files name different partitions.
    Contradictory,
    /// Nothing in it is a partition's.
    Foreign,
}

impl Identity {
    /// `partition` is what the directory's name says.
    pub fn of(directory: &Path, partition: PartitionIndex) -> Result<Self, FileError> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Self::Foreign),
            entries => entries.map_err(FileError::of("list", directory))?,
        };
        let metadata = PartitionMetadata::read(directory)?;
        let checkpoint = PartitionCheckpoint::read(directory)?.map(|it| it.partition);
        match (metadata, checkpoint) {
            (_, Ok(checkpoint)) if checkpoint.partition != partition => {
                return Ok(Self::Contradictory);
            }
            (Ok(metadata), Ok(checkpoint)) if checkpoint.topic != metadata.topic_id => {
                // Only the checkpoint has a checksum, and no crash leaves two ids: the other one is damaged.
                return Ok(Self::WithoutId(Some(checkpoint.topic)));
            }
            (Ok(metadata), _) => return Ok(Self::Topic(metadata.topic_id)),
            (Err(_), Ok(checkpoint)) => return Ok(Self::WithoutId(Some(checkpoint.topic))),
            (Err(_), Err(_)) => {}
        }
        let mut identity = Self::Empty;
        for entry in entries {
            let entry = entry.map_err(FileError::of("list", directory))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_of_a_partition(&name) {
                return Ok(Self::WithoutId(None));
            }
            if !is_leftover(&name) {
                identity = Self::Foreign;
            }
        }
        Ok(identity)
    }
}

fn is_of_a_partition(file_name: &str) -> bool {
    SegmentFileName::parse(file_name).is_some()
        || file_name.ends_with(SWAP_SUFFIX)
        || [CHECKPOINT_FILE, PARTITION_METADATA_FILE, LEADER_EPOCHS_FILE].contains(&file_name)
}

/// Whether a directory without an id may be taken for the partition that has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutId {
    /// At a start: it was made before directories had ids.
    Adopt,
    /// The partition is new, and nothing can be there of it.
    Displace,
}

#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is in the way: nothing in it is a partition's, so that it is left alone", .0.display())]
    Foreign(PathBuf),
}

/// Where one partition's files are.
#[derive(Clone, Debug)]
pub struct PartitionDirectory {
    path: PathBuf,
    topic: TopicName,
    partition: TopicPartition,
}

impl PartitionDirectory {
    pub fn new(log_dir: &Path, topic: &TopicName, partition: TopicPartition) -> Self {
        let name = PartitionDirName {
            topic: topic.clone(),
            partition: partition.partition,
        };
        Self {
            path: log_dir.join(name.to_string()),
            topic: topic.clone(),
            partition,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory the partition's: makes it, or finds that it is. Another topic's is renamed to a stray one, whose path is
    /// put into `displaced`. Blocks. It survives a power cut once the log directory is synced, which is the caller's duty.
    pub fn claim(
        &self,
        without_id: WithoutId,
        displaced: &mut Vec<PathBuf>,
    ) -> Result<(), ClaimError> {
        let own = self.partition.topic;
        match Identity::of(&self.path, self.partition.partition)? {
            Identity::Topic(topic) if topic == own => {}
            Identity::WithoutId(topic)
                if without_id == WithoutId::Adopt && topic.is_none_or(|topic| topic == own) =>
            {
                match self.write_id() {
                    // Its records are served all the same; the next start tries again.
                    Err(error) if error.is_disk_full() => {}
                    written => written?,
                }
            }
            Identity::Absent => {
                self.create()?;
                self.write_id()?;
            }
            Identity::Empty => self.write_id()?,
            Identity::Topic(_) | Identity::WithoutId(_) | Identity::Contradictory => {
                displaced.push(self.displace()?);
                self.create()?;
                self.write_id()?;
            }
            Identity::Foreign => return Err(ClaimError::Foreign(self.path.clone())),
        }
        Ok(())
    }

    /// Moves the directory out of the way for its removal, if it is there and this partition's. Blocks; the log directory is then to be
    /// synced. `None`: there is nothing to remove.
    pub fn set_aside(&self) -> Result<Option<PathBuf>, FileError> {
        match Identity::of(&self.path, self.partition.partition)? {
            Identity::Absent | Identity::Foreign => return Ok(None),
            Identity::Topic(topic) | Identity::WithoutId(Some(topic))
                if topic != self.partition.topic =>
            {
                return Ok(None);
            }
            _ => {}
        }
        let name =
            RemovedDirName::deleted(&self.topic, self.partition.topic, self.partition.partition);
        let to = self.path.with_file_name(name.to_string());
        let renamed = fault_point::growth(|| fs::rename(&self.path, &to));
        match renamed.map_err(FileError::of("rename", &self.path)) {
            // A longer name may need a block of the log directory's, and on a full disk there is none: so without the detour. The id
            // goes last, so that a crash leaves no directory of which nobody knows whose it is.
            Err(error) if error.is_disk_full() => self.remove_in_place().map(|()| None),
            renamed => renamed.map(|()| Some(to)),
        }
    }

    fn create(&self) -> Result<(), FileError> {
        fault_point::growth(|| fs::create_dir(&self.path))
            .map_err(FileError::of("create", &self.path))
    }

    fn write_id(&self) -> Result<(), FileError> {
        let topic_id = self.partition.topic;
        PartitionMetadata { topic_id }.write(&self.path)
    }

    fn displace(&self) -> Result<PathBuf, FileError> {
        let name = RemovedDirName::stray(&self.topic, self.partition.partition);
        let to = self.path.with_file_name(name.to_string());
        fault_point::growth(|| fs::rename(&self.path, &to))
            .map_err(FileError::of("rename", &self.path))?;
        Ok(to)
    }

    fn remove_in_place(&self) -> Result<(), FileError> {
        let metadata = self.path.join(PARTITION_METADATA_FILE);
        for entry in fs::read_dir(&self.path).map_err(FileError::of("list", &self.path))? {
            let path = entry.map_err(FileError::of("list", &self.path))?.path();
            if path != metadata {
                atomic_file::remove(&path)?;
            }
        }
        atomic_file::remove(&metadata)?;
        fault_point::change(|| fs::remove_dir(&self.path))
            .map_err(FileError::of("remove", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::{LeaderEpoch, Offset};
    use crate::storage::checkpoint::RecoveryPoint;
    use crate::storage::fault_point::planned::{self, Fault};

    const SEGMENT: &str = "00000000000000000000.log";

    fn id(topic: u128) -> TopicPartition {
        TopicPartition {
            topic: TopicId(uuid::Uuid::from_u128(topic)),
            partition: PartitionIndex(3),
        }
    }

    fn directory(log_dir: &Path, topic: u128) -> PartitionDirectory {
        PartitionDirectory::new(log_dir, &TopicName::new("t").unwrap(), id(topic))
    }

    fn write_checkpoint(directory: &Path, partition: TopicPartition) {
        let checkpoint = PartitionCheckpoint {
            partition,
            log_start_offset: Offset(0),
            recovery_point: RecoveryPoint::segment_start(Offset(0), LeaderEpoch::UNKNOWN),
        };
        checkpoint.write(directory).unwrap();
    }

    fn write_id(directory: &Path, topic: u128) {
        let topic_id = id(topic).topic;
        PartitionMetadata { topic_id }.write(directory).unwrap();
    }

    /// What may lie under the name `t-3`, of topic 1 if of any.
    const LEFT: [&str; 9] = [
        "nothing",
        "empty",
        "unfinished id",
        "id",
        "id, records",
        "id, checkpoint, records",
        "checkpoint, records",
        "records",
        "damaged id, records",
    ];

    fn leave(what: &str, path: &Path) {
        if what == "nothing" {
            return;
        }
        fs::create_dir(path).unwrap();
        for part in what.split(", ") {
            match part {
                "empty" => {}
                "unfinished id" => fs::write(path.join("partition.metadata.tmp"), "vers").unwrap(),
                "id" => write_id(path, 1),
                "damaged id" => fs::write(path.join(PARTITION_METADATA_FILE), "vers").unwrap(),
                "checkpoint" => write_checkpoint(path, id(1)),
                "records" => fs::write(path.join(SEGMENT), "of topic 1").unwrap(),
                other => panic!("{other}"),
            }
        }
    }

    fn has_records(path: &Path) -> bool {
        path.join(SEGMENT).exists()
    }

    #[test]
    fn records_of_another_topic_are_never_adopted_and_ones_own_always_are() {
        for what in LEFT {
            for (topic, without_id) in [
                (1, WithoutId::Adopt),
                (1, WithoutId::Displace),
                (2, WithoutId::Displace),
            ] {
                let log_dir = tempfile::tempdir().unwrap();
                let claimed = directory(log_dir.path(), topic);
                leave(what, claimed.path());
                let had_records = has_records(claimed.path());
                let has_id = what.starts_with("id");
                let mut displaced = Vec::new();
                claimed.claim(without_id, &mut displaced).unwrap();

                let identity = Identity::of(claimed.path(), PartitionIndex(3)).unwrap();
                assert_eq!(identity, Identity::Topic(id(topic).topic), "{what}");
                let is_own = topic == 1 && (has_id || without_id == WithoutId::Adopt);
                assert_eq!(has_records(claimed.path()), had_records && is_own, "{what}");
                let kept = displaced.iter().filter(|path| has_records(path)).count();
                assert_eq!(kept, usize::from(had_records && !is_own), "{what}");
            }
        }
    }

    /// What a start makes of whatever a fault has left of a claim by topic 2, which is new.
    fn expect_whole_at_start(claimed: &PartitionDirectory, context: &str) {
        claimed.claim(WithoutId::Adopt, &mut Vec::new()).unwrap();
        let identity = Identity::of(claimed.path(), PartitionIndex(3)).unwrap();
        assert_eq!(identity, Identity::Topic(id(2).topic), "{context}");
        assert!(!has_records(claimed.path()), "{context}");
    }

    #[test]
    fn whatever_a_fault_leaves_of_a_claim_the_next_one_makes_whole() {
        let faults = [
            Fault::Dies,
            Fault::DiskFull,
            Fault::Fails(io::ErrorKind::Other),
            Fault::FailsAfter(io::ErrorKind::Other),
        ];
        for (what, fault) in LEFT
            .iter()
            .flat_map(|what| faults.map(|fault| (*what, fault)))
        {
            let change_count = planned::for_each_change(|at| {
                let log_dir = tempfile::tempdir().unwrap();
                let claimed = directory(log_dir.path(), 2);
                leave(what, claimed.path());
                let had_records = has_records(claimed.path());
                let mut displaced = Vec::new();
                let (result, has_met) = planned::with(at, fault, || {
                    claimed.claim(WithoutId::Displace, &mut displaced)
                });
                let context = format!("{what}, {fault:?} at {at}");
                if result.is_ok() {
                    expect_whole_at_start(&claimed, &context);
                    return has_met;
                }
                // While the process lives it tries again as for a new partition, and so does a start that knows whose the records are.
                let names_topic_1 = what.starts_with("id") || what.starts_with("checkpoint");
                if fault != Fault::Dies {
                    claimed.claim(WithoutId::Displace, &mut displaced).unwrap();
                    expect_whole_at_start(&claimed, &context);
                } else if names_topic_1 || !had_records {
                    expect_whole_at_start(&claimed, &context);
                }
                has_met
            });
            assert!(change_count > 0, "{what}");
        }
    }

    #[test]
    fn whatever_a_fault_leaves_of_a_deletion_no_topic_is_given_its_records() {
        for fault in [
            Fault::Dies,
            Fault::DiskFull,
            Fault::Fails(io::ErrorKind::Other),
            Fault::FailsAfter(io::ErrorKind::Other),
        ] {
            planned::for_each_change(|at| {
                let log_dir = tempfile::tempdir().unwrap();
                let deleted = directory(log_dir.path(), 1);
                leave("id, checkpoint, records", deleted.path());
                let (_, has_met) = planned::with(at, fault, || deleted.set_aside());
                expect_whole_at_start(&directory(log_dir.path(), 2), &format!("{fault:?} at {at}"));
                has_met
            });
        }
    }

    #[test]
    fn files_that_name_two_partitions_belong_to_none() {
        let log_dir = tempfile::tempdir().unwrap();
        let claimed = directory(log_dir.path(), 1);
        leave("records", claimed.path());
        let of_checkpoint = TopicPartition {
            partition: PartitionIndex(4),
            ..id(1)
        };
        write_checkpoint(claimed.path(), of_checkpoint);
        let identity = Identity::of(claimed.path(), PartitionIndex(3)).unwrap();
        assert_eq!(identity, Identity::Contradictory);
        let mut displaced = Vec::new();
        claimed.claim(WithoutId::Adopt, &mut displaced).unwrap();
        assert!(!has_records(claimed.path()) && has_records(&displaced[0]));
    }

    #[test]
    fn a_damaged_id_beside_a_checkpoint_costs_no_records() {
        let log_dir = tempfile::tempdir().unwrap();
        let claimed = directory(log_dir.path(), 1);
        leave("records", claimed.path());
        write_id(claimed.path(), 2);
        write_checkpoint(claimed.path(), id(1));
        let mut displaced = Vec::new();
        claimed.claim(WithoutId::Adopt, &mut displaced).unwrap();
        assert!(has_records(claimed.path()) && displaced.is_empty());
        let identity = Identity::of(claimed.path(), PartitionIndex(3)).unwrap();
        assert_eq!(identity, Identity::Topic(id(1).topic), "the id is mended");
    }

    #[test]
    fn what_is_no_partitions_is_left_alone() {
        let log_dir = tempfile::tempdir().unwrap();
        let claimed = directory(log_dir.path(), 1);
        fs::create_dir(claimed.path()).unwrap();
        fs::write(claimed.path().join("notes.txt"), "precious").unwrap();
        for without_id in [WithoutId::Adopt, WithoutId::Displace] {
            let refused = claimed.claim(without_id, &mut Vec::new()).unwrap_err();
            assert!(matches!(refused, ClaimError::Foreign(_)), "{refused}");
        }
        assert_eq!(claimed.set_aside().unwrap(), None);
        assert!(claimed.path().join("notes.txt").exists());
    }

    #[test]
    fn only_ones_own_directory_is_set_aside() {
        let log_dir = tempfile::tempdir().unwrap();
        let own = directory(log_dir.path(), 1);
        assert_eq!(own.set_aside().unwrap(), None);
        leave("id, checkpoint, records", own.path());
        assert_eq!(directory(log_dir.path(), 2).set_aside().unwrap(), None);
        let to = own.set_aside().unwrap().unwrap();
        assert!(has_records(&to) && !own.path().exists());
        let name = to.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(RemovedDirName::parse(&name).unwrap().to_string(), name);
    }

    #[test]
    fn a_removal_in_place_that_is_cut_off_leaves_a_directory_that_says_whose_it_was() {
        let log_dir = tempfile::tempdir().unwrap();
        let own = directory(log_dir.path(), 1);
        leave("id, checkpoint, records", own.path());
        // A directory in it is what the removal does not expect, and stops at.
        fs::create_dir(own.path().join("in the way")).unwrap();
        own.remove_in_place().unwrap_err();
        let identity = Identity::of(own.path(), PartitionIndex(3)).unwrap();
        assert_eq!(identity, Identity::Topic(id(1).topic));
        fs::remove_dir(own.path().join("in the way")).unwrap();
        own.remove_in_place().unwrap();
        assert!(!own.path().exists());
    }
}
