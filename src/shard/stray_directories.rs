//! Directories of partitions that no topic has: renamed to `-stray`, and removed after `file.delete.delay.ms` unless their id is
//! that of a topic.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::config::Overrides;
use crate::io::clock::Monotonic;
use crate::io::{blocking, executor};
use crate::metadata::MetadataImage;
use crate::model::limits::{STRAY_RETRY_MS, STRAYS_NAMED_MAX};
use crate::shard::runtime::Shard;
use crate::shard::slow_removal;
use crate::storage::file_error::FileError;
use crate::storage::partition_dir::RemovedDirName;
use crate::storage::partition_directory::Identity;

/// Those that wait for their removal. A broker that ends before leaves them to its next start.
#[derive(Debug, Default)]
pub struct StrayDirectories {
    /// In the order in which they are due.
    waiting: Vec<(Monotonic, PathBuf)>,
}

impl StrayDirectories {
    pub fn push(&mut self, due: Monotonic, path: PathBuf) {
        let place = self.waiting.partition_point(|(other, _)| *other <= due);
        self.waiting.insert(place, (due, path));
    }

    pub fn take_due(&mut self, now: Monotonic) -> Vec<PathBuf> {
        let due_count = self.waiting.partition_point(|(due, _)| *due <= now);
        let due = self.waiting.drain(..due_count);
        due.map(|(_, path)| path).collect()
    }
}

impl Shard {
    /// Has stray directories removed when their time has come.
    pub fn remove_strays_later(&self, paths: Vec<PathBuf>) {
        if paths.is_empty() {
            return;
        }
        // They have no topic whose setting would count: the default of all topics does.
        let defaults = self.config().topic_config(&Overrides::default());
        let delay_ms = defaults.map_or(u64::MAX, |defaults| defaults.file_delete_delay_ms);
        let due = self.clock().monotonic() + Duration::from_millis(delay_ms);
        let mut strays = self.stray_directories().borrow_mut();
        for path in paths {
            strays.push(due, path);
        }
    }

    pub(super) fn remove_due_strays(self: &Rc<Self>) {
        let now = self.clock().monotonic();
        let due = self.stray_directories().borrow_mut().take_due(now);
        if due.is_empty() || self.log_dir().failure().is_some() {
            return;
        }
        let (shard, image) = (self.clone(), self.image());
        executor::spawn_background(async move {
            for path in due {
                let (stray, image) = (path.clone(), image.clone());
                match blocking::run(move || is_of_no_topic(&stray, &image)).await {
                    Ok(true) => slow_removal::remove_directory(path, shard.log_dir()).await,
                    Ok(false) => {
                        tracing::warn!(path = %path.display(), "a stray directory is kept: it may hold records of a topic that is there");
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a stray directory is looked into again later");
                        let due = now + Duration::from_millis(STRAY_RETRY_MS);
                        shard.stray_directories().borrow_mut().push(due, path);
                    }
                }
            }
        })
        .detach();
    }
}

/// Whether nobody can miss it: its id is that of no topic, or it has none. Directories that somebody confused still have theirs.
fn is_of_no_topic(stray: &Path, image: &MetadataImage) -> Result<bool, FileError> {
    let name = stray.file_name().map(|name| name.to_string_lossy());
    let Some(name) = name.and_then(|name| RemovedDirName::parse(&name)) else {
        return Ok(false);
    };
    Ok(match Identity::of(stray, name.partition())? {
        Identity::Topic(topic) | Identity::WithoutId(Some(topic)) => {
            image.topic_by_id(topic).is_none()
        }
        Identity::Absent | Identity::Empty | Identity::WithoutId(None) => true,
        Identity::Contradictory | Identity::Foreign => false,
    })
}

/// One line for all of them: the operator is told what goes, and when.
pub fn tell_of_strays(strays: &[PathBuf]) {
    if strays.is_empty() {
        return;
    }
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let named: Vec<_> = strays.iter().filter_map(|path| name(path)).collect();
    let (shown, more) = named.split_at(named.len().min(STRAYS_NAMED_MAX));
    tracing::warn!(
        count = strays.len(),
        directories = shown.join(", "),
        more = more.len(),
        "directories of partitions that no topic has were renamed to -stray; they are removed after file.delete.delay.ms, but for those with the id of a topic that is there"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goes_when_it_is_due() {
        let at = |seconds| Monotonic::ZERO + Duration::from_secs(seconds);
        let mut strays = StrayDirectories::default();
        for (due, path) in [(60, "c"), (5, "a"), (5, "b")] {
            strays.push(at(due), path.into());
        }
        assert!(strays.take_due(at(4)).is_empty());
        assert_eq!(strays.take_due(at(5)), [PathBuf::from("a"), "b".into()]);
        assert!(strays.take_due(at(59)).is_empty());
        assert_eq!(strays.take_due(at(60)), [PathBuf::from("c")]);
    }
}
