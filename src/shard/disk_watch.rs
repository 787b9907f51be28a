//! Looks at the log directory's file system, so that produce is refused before it is full. One shard does it for all.

use std::rc::Rc;
use std::time::Duration;

use crate::io::disk::FileSystemSpace;
use crate::io::{blocking, executor};
use crate::metrics::DirectorySpace;
use crate::model::limits::DISK_GUARD_MS;
use crate::shard::disk_guard::{DiskMarks, Room};
use crate::shard::runtime::Shard;

impl Shard {
    /// Runs as long as the shard does.
    pub(super) async fn watch_disk(self: Rc<Self>) {
        loop {
            let directory = self.log_dir().path().to_owned();
            match blocking::run(move || FileSystemSpace::of(&directory)).await {
                Ok(space) => self.on_disk_space(space),
                Err(error) => {
                    let directory = self.log_dir().path().display();
                    tracing::warn!(%directory, %error, "the file system does not say how full it is");
                }
            }
            executor::sleep(Duration::from_millis(DISK_GUARD_MS)).await;
        }
    }

    fn on_disk_space(&self, space: FileSystemSpace) {
        let config = self.config();
        let marks = DiskMarks {
            high: config.disk_high_watermark,
            reserve: config.disk_reserve_watermark,
        };
        let before = self.log_dir().room();
        let room = before.at(space.used_ratio(), marks);
        self.log_dir().set_room(room);
        self.metrics().record_directory(DirectorySpace {
            used_bytes: space.used_bytes,
            free_bytes: space.free_bytes,
            refused_from_bytes: (space.total_bytes() as f64 * marks.high) as u64,
            guard_level: room as u64,
        });
        if room == before {
            return;
        }
        let directory = self.log_dir().path().display();
        let used_percent = (space.used_ratio() * 1_000.0).round() / 10.0;
        match room {
            Room::Free => {
                tracing::info!(%directory, used_percent, "there is room again: produce is taken");
            }
            Room::Reserve => tracing::warn!(
                %directory,
                used_percent,
                "the disk fills up: produce is refused; reads, deletions and retention go on"
            ),
            Room::Full => tracing::error!(
                %directory,
                used_percent,
                "the disk is nearly full: nothing is appended, committed offsets included; reads, deletions and retention go on"
            ),
        }
    }
}
