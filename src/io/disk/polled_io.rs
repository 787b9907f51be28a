//! Makes glommio find out whether a device can really be polled for completions.
//!
//! At an executor's first file on a device glommio 0.9 reads the file's first block through a polling ring, and if
//! that works it sends all later reads and writes there. For a file that is empty, or whose first block was allocated
//! and never written, the kernel answers without asking the device: glommio then polls a device that may not know
//! how, and every read that reaches the device fails with EOPNOTSUPP (seen on a virtio disk). New segments are just
//! such files. So before an executor opens its first file on a device, it opens one here whose first block has been
//! written.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use glommio::io::DmaFile;

use super::error::Cause;
use crate::io::blocking;
use crate::model::limits::PAGE_BYTES;

thread_local! {
    /// Devices (`st_dev`) that this executor's thread has asked.
    static ASKED: RefCell<HashSet<u64>> = RefCell::new(HashSet::new());
}

/// The directory of a file that is about to be opened.
pub(super) async fn ask_device_of(directory: &Path) -> io::Result<()> {
    let device = fs::metadata(directory)?.dev();
    if ASKED.with_borrow(|asked| asked.contains(&device)) {
        return Ok(());
    }
    let directory = directory.to_owned();
    let find = move || match file_with_a_written_block(&directory) {
        // Nothing can be created here, or not now: on a full disk the first file to be opened may be an empty one all the
        // same, so one that is there and was written is asked for.
        Err(error) if cannot_create_here(&error) => Ok(written_file_in(&directory)),
        made => made.map(Some),
    };
    let Some(written) = blocking::run(find).await? else {
        return Ok(());
    };
    let path = format!("/proc/self/fd/{}", written.as_raw_fd());
    let file = DmaFile::open(&path)
        .await
        .map_err(|error| Cause::from(error).into_io())?;
    file.close()
        .await
        .map_err(|error| Cause::from(error).into_io())?;
    ASKED.with_borrow_mut(|asked| asked.insert(device));
    Ok(())
}

fn cannot_create_here(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EACCES | libc::EPERM | libc::EROFS | libc::ENOSPC | libc::EDQUOT)
    )
}

/// A file of the directory whose first bytes were written, if one can be read. The larger ones first: of the smallest ones the file
/// system may keep the bytes elsewhere than in a block.
fn written_file_in(directory: &Path) -> Option<File> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path())))
        .collect();
    files.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    files.into_iter().find_map(|(_, path)| {
        let file = File::open(path).ok()?;
        let mut first = [0; PAGE_BYTES];
        let read_bytes = file.read_at(&mut first, 0).ok()?;
        first[..read_bytes]
            .iter()
            .any(|&byte| byte != 0)
            .then_some(file)
    })
}

/// A file without a name, so that nothing of it is left after a crash either.
fn file_with_a_written_block(directory: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".probe-{}-{number}", process::id()));
    // Another process may have had this number and died between these two lines.
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    file.write_all(&[1; PAGE_BYTES])?;
    file.sync_data()?;
    Ok(file)
}
