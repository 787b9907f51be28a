use std::io;
use std::path::{Path, PathBuf};

use super::durable_file::{read_if_present, replace_file, sync_directory};
use super::metadata_log::{MetadataLog, MetadataLogError};
use crate::config::parse_properties;
use crate::io::fs;
use crate::metadata::{ClusterId, MetadataImage, MetadataRecord};
use crate::model::{NodeId, TopicName};

/// Where the metadata lies in the data directory. No partition's directory has this name: those end in a number.
pub const METADATA_DIRECTORY: &str = "__metadata";

/// Says whose directory it is, as Kafka's file of the same name does.
pub const META_PROPERTIES: &str = "meta.properties";

#[derive(Debug, thiserror::Error)]
pub enum DataDirectoryError {
    #[error("{path}: cannot {operation}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        operation: &'static str,
        source: io::Error,
    },
    #[error(
        "{path} is missing, but the data directory was in use: {evidence} is there. Restore it from a copy, or move the data away",
        path = .path.display(), evidence = .evidence.display()
    )]
    MetadataMissing { path: PathBuf, evidence: PathBuf },
    #[error("{path}: {reason}", path = .path.display())]
    MetaProperties { path: PathBuf, reason: String },
    #[error("{path} belongs to node {found}, but node.id is {configured}", path = .path.display())]
    OtherNode {
        path: PathBuf,
        found: String,
        configured: NodeId,
    },
    #[error("{path} names cluster {found}, but the metadata is that of cluster {metadata}", path = .path.display())]
    OtherCluster {
        path: PathBuf,
        found: String,
        metadata: ClusterId,
    },
    #[error(transparent)]
    Log(#[from] MetadataLogError),
}

/// Opens the metadata of a data directory; makes it where the directory holds nothing of ours yet. Never starts empty beside
/// data: partitions without the metadata that names them are an error.
pub(super) fn open(
    data: &Path,
    node: NodeId,
    snapshot_interval_bytes: u64,
) -> Result<(MetadataLog, MetadataImage), DataDirectoryError> {
    let directory = data.join(METADATA_DIRECTORY);
    let exists = fs::try_exists(&directory).map_err(io_error(&directory, "look for it"))?;
    if !exists {
        if let Some(evidence) = evidence_of_use(data)? {
            return Err(DataDirectoryError::MetadataMissing {
                path: directory,
                evidence,
            });
        }
        format(data, &directory)?;
    }
    let (log, image) = MetadataLog::open(&directory, snapshot_interval_bytes)?;
    check_identity(data, node, image.cluster_id())?;
    Ok((log, image))
}

/// Makes the metadata under another name first, so that a crash leaves either all of it or nothing that counts.
fn format(data: &Path, directory: &Path) -> Result<(), DataDirectoryError> {
    fs::create_dir_all(data).map_err(io_error(data, "create it"))?;
    let unfinished = data.join("__metadata.new");
    if let Err(source) = fs::remove_dir_all(&unfinished)
        && source.kind() != io::ErrorKind::NotFound
    {
        return Err(io_error(&unfinished, "remove it")(source));
    }
    fs::create_dir(&unfinished).map_err(io_error(&unfinished, "create it"))?;
    let cluster_id = ClusterId::random().to_bits();
    MetadataLog::create(&unfinished, &[MetadataRecord::ClusterFormed { cluster_id }])?;
    fs::rename(&unfinished, directory).map_err(io_error(&unfinished, "rename it"))?;
    sync_directory(data).map_err(io_error(data, "sync it"))
}

/// What shows that the directory was a broker's, if anything does.
fn evidence_of_use(data: &Path) -> Result<Option<PathBuf>, DataDirectoryError> {
    let entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io_error(data, "list it")(source)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error(data, "list it"))?;
        let name = entry.file_name();
        if name == META_PROPERTIES
            || (is_partition_name(&name.to_string_lossy()) && fs::is_dir(entry.path()))
        {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn is_partition_name(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(topic, partition)| {
        TopicName::new(topic).is_ok()
            && !partition.is_empty()
            && partition.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The metadata itself knows its cluster; `meta.properties` keeps a directory from being started as another node, or put
/// beside another cluster's. A first start, or a crash in it, has none: it is written.
fn check_identity(data: &Path, node: NodeId, cluster: ClusterId) -> Result<(), DataDirectoryError> {
    let path = data.join(META_PROPERTIES);
    let Some(bytes) = read_if_present(&path).map_err(io_error(&path, "read it"))? else {
        let text = format!("version=1\ncluster.id={cluster}\nnode.id={node}\n");
        return replace_file(&path, text.as_bytes()).map_err(io_error(&path, "write it"));
    };
    let refused = |reason| DataDirectoryError::MetaProperties {
        path: path.clone(),
        reason,
    };
    let text = String::from_utf8(bytes).map_err(|_| refused("is not text".into()))?;
    let entries = parse_properties(&text).map_err(|error| refused(error.to_string()))?;
    let value = |name: &str| {
        let entry = entries.iter().find(|(present, _)| present == name);
        entry
            .map(|(_, value)| value.clone())
            .ok_or_else(|| refused(format!("{name} is missing")))
    };
    let found = value("node.id")?;
    if found != node.to_string() {
        return Err(DataDirectoryError::OtherNode {
            path,
            found,
            configured: node,
        });
    }
    let found = value("cluster.id")?;
    if found != cluster.to_string() {
        return Err(DataDirectoryError::OtherCluster {
            path,
            found,
            metadata: cluster,
        });
    }
    Ok(())
}

fn io_error(
    path: &Path,
    operation: &'static str,
) -> impl Fn(io::Error) -> DataDirectoryError + use<> {
    let path = path.to_owned();
    move |source| DataDirectoryError::Io {
        path: path.clone(),
        operation,
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open_as(data: &Path, node: i32) -> Result<ClusterId, DataDirectoryError> {
        open(data, NodeId(node), 1 << 20).map(|(_, image)| image.cluster_id())
    }

    #[test]
    fn a_new_directory_becomes_a_cluster_of_its_own_and_stays_it() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("not/there/yet");
        let cluster = open_as(&data, 1).unwrap();
        assert_eq!(open_as(&data, 1).unwrap(), cluster);
        let text = fs::read_to_string(data.join(META_PROPERTIES)).unwrap();
        assert_eq!(
            text,
            format!("version=1\ncluster.id={cluster}\nnode.id=1\n")
        );
    }

    #[test]
    fn data_without_metadata_is_never_an_empty_broker() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        open_as(data, 1).unwrap();
        fs::remove_dir_all(data.join(METADATA_DIRECTORY)).unwrap();
        let refused = |evidence: &str| match open_as(data, 1) {
            Err(DataDirectoryError::MetadataMissing {
                path,
                evidence: found,
            }) => {
                assert_eq!(path, data.join(METADATA_DIRECTORY));
                assert_eq!(found, data.join(evidence));
            }
            other => panic!("{other:?}"),
        };
        refused(META_PROPERTIES);
        fs::remove_file(data.join(META_PROPERTIES)).unwrap();
        fs::create_dir(data.join("a.topic-17")).unwrap();
        refused("a.topic-17");
        fs::remove_dir(data.join("a.topic-17")).unwrap();
        fs::create_dir(data.join("lost+found")).unwrap();
        assert!(open_as(data, 1).is_ok(), "what is not ours does not matter");
    }

    #[test]
    fn a_first_start_that_crashed_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        fs::create_dir(data.join("__metadata.new")).unwrap();
        fs::write(data.join("__metadata.new/metadata.log"), "half").unwrap();
        let cluster = open_as(data, 1).unwrap();
        fs::remove_file(data.join(META_PROPERTIES)).unwrap();
        assert_eq!(open_as(data, 1).unwrap(), cluster);
        assert!(data.join(META_PROPERTIES).exists());
    }

    #[test]
    fn a_directory_belongs_to_one_node_of_one_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        open_as(data, 1).unwrap();
        assert!(matches!(
            open_as(data, 2),
            Err(DataDirectoryError::OtherNode { .. })
        ));
        let other = format!("cluster.id={}\nnode.id=1\n", ClusterId::random());
        fs::write(data.join(META_PROPERTIES), other).unwrap();
        assert!(matches!(
            open_as(data, 1),
            Err(DataDirectoryError::OtherCluster { .. })
        ));
        fs::write(data.join(META_PROPERTIES), "node.id=1\n").unwrap();
        let error = open_as(data, 1).unwrap_err().to_string();
        assert!(
            error.ends_with("meta.properties: cluster.id is missing"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let error = open_as(Path::new("/proc/nothing/here"), 1)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/proc/nothing/here"), "{error}");
    }
}
