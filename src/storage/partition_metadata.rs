use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::model::TopicId;

use super::atomic_file;
use super::file_error::FileError;

/// The file's name in the partition's directory.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";

/// More than the file ever has.
const FILE_BYTES_MAX: u64 = 256;

/// Which topic a partition's directory belongs to, in `partition.metadata`, as Apache Kafka writes it (KIP-516):
///
/// ```text
/// version: 0
/// topic_id: <the id's 16 bytes in URL-safe base64 without padding, 22 characters>
/// ```
///
/// It is there, on disk, before the partition is hosted. A name can be given again, to another topic; an id cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    pub topic_id: TopicId,
}

/// Why the file does not say it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionMetadataDamage {
    #[error("the file is missing")]
    Missing,
    #[error("line {0} is not as it should be")]
    Line(usize),
}

impl PartitionMetadata {
    pub fn encode(&self) -> String {
        let id = URL_SAFE_NO_PAD.encode(self.topic_id.0.as_bytes());
        format!("version: 0\ntopic_id: {id}")
    }

    pub fn decode(file: &[u8]) -> Result<Self, PartitionMetadataDamage> {
        let text = std::str::from_utf8(file).map_err(|_| PartitionMetadataDamage::Line(1))?;
        let mut lines = text.lines();
        let mut value = |number: usize, name: &str| {
            let line = lines.next().and_then(|line| line.split_once(':'));
            match line {
                Some((found, value)) if found.trim() == name => Ok(value.trim()),
                _ => Err(PartitionMetadataDamage::Line(number)),
            }
        };
        if value(1, "version")? != "0" {
            return Err(PartitionMetadataDamage::Line(1));
        }
        let id = URL_SAFE_NO_PAD.decode(value(2, "topic_id")?).ok();
        let id = id.and_then(|id| uuid::Uuid::from_slice(&id).ok());
        match id {
            Some(id) if !id.is_nil() => Ok(Self {
                topic_id: TopicId(id),
            }),
            _ => Err(PartitionMetadataDamage::Line(2)),
        }
    }

    /// Replaces the file; it survives a power cut when this returns, if the directory does.
    pub fn write(&self, dir: &Path) -> Result<(), FileError> {
        atomic_file::replace(&dir.join(PARTITION_METADATA_FILE), self.encode().as_bytes())
    }

    pub fn read(dir: &Path) -> Result<Result<Self, PartitionMetadataDamage>, FileError> {
        let file = atomic_file::read(&dir.join(PARTITION_METADATA_FILE), FILE_BYTES_MAX)?;
        Ok(match file {
            Some(file) => Self::decode(&file),
            None => Err(PartitionMetadataDamage::Missing),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> PartitionMetadata {
        PartitionMetadata {
            topic_id: TopicId(uuid::Uuid::from_u128(
                0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
            )),
        }
    }

    #[test]
    fn the_text_is_kafkas() {
        // The id as Kafka's `Uuid.toString` has it.
        let text = "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w";
        assert_eq!(metadata().encode(), text);
        for text in [text.to_owned(), format!("{text}\n")] {
            assert_eq!(PartitionMetadata::decode(text.as_bytes()), Ok(metadata()));
        }
    }

    #[test]
    fn it_comes_back_from_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = PartitionMetadata::read(dir.path()).unwrap();
        assert_eq!(missing, Err(PartitionMetadataDamage::Missing));
        metadata().write(dir.path()).unwrap();
        assert_eq!(PartitionMetadata::read(dir.path()).unwrap(), Ok(metadata()));
    }

    #[test]
    fn anything_else_is_damage() {
        let damaged: [(&[u8], usize); 8] = [
            (b"", 1),
            (b"\xff\xfe", 1),
            (b"version: 1\ntopic_id: ABEiM0RVZneImaq7zN3u_w", 1),
            (b"topic_id: ABEiM0RVZneImaq7zN3u_w", 1),
            (b"version: 0", 2),
            (b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u", 2),
            (b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u/w", 2),
            (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 2),
        ];
        for (file, line) in damaged {
            let found = PartitionMetadata::decode(file);
            assert_eq!(found, Err(PartitionMetadataDamage::Line(line)), "{file:?}");
        }
    }
}
