//! Where a directory is changed: each change passes here, so that a test can have any of them fail, or have all of them stop there, as
//! a process does that dies. A release only makes the change.

use std::io;

use crate::io::fs::File;

/// Makes one change of a file or a directory for which a full disk has room too.
pub(super) fn change<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    return planned::make(planned::Space::NotNeeded, make);
    #[cfg(not(test))]
    make()
}

/// Makes one change that may need a block more: a new name, a longer file.
pub(super) fn growth<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    return planned::make(planned::Space::Needed, make);
    #[cfg(not(test))]
    make()
}

/// Writes all of `bytes` at `position`; where that is to fail, a part of it is written.
pub(super) fn write_all_at(file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    #[cfg(test)]
    if let Err(error) = planned::meet(planned::Space::Needed) {
        file.write_all_at(&bytes[..bytes.len() / 2], position)?;
        return Err(error);
    }
    file.write_all_at(bytes, position)
}

#[cfg(test)]
pub(super) mod planned {
    use std::cell::Cell;
    use std::io;

    /// What happens at a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fault {
        /// It alone fails, with this error.
        Fails(io::ErrorKind),
        /// It alone is made and fails all the same, as on a disk that answers with an error too late.
        FailsAfter(io::ErrorKind),
        /// From it on the disk is full: what needs a block more fails.
        DiskFull,
        /// The process is no more: neither it nor a later one happens.
        Dies,
    }

    thread_local! {
        static PLAN: Cell<Option<(usize, Fault)>> = const { Cell::new(None) };
        static MADE: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Space {
        Needed,
        NotNeeded,
    }

    /// What becomes of a change that does not fail outright.
    pub(super) enum Change {
        Made,
        MadeAndFails(io::ErrorKind),
    }

    pub(super) fn meet(space: Space) -> io::Result<Change> {
        let at = MADE.replace(MADE.get() + 1);
        match PLAN.get() {
            Some((planned, Fault::Fails(kind))) if at == planned => Err(kind.into()),
            Some((planned, Fault::DiskFull)) if at >= planned && space == Space::Needed => {
                Err(io::ErrorKind::StorageFull.into())
            }
            Some((planned, Fault::Dies)) if at >= planned => Err(io::Error::other("dead")),
            Some((planned, Fault::FailsAfter(kind))) if at == planned => {
                Ok(Change::MadeAndFails(kind))
            }
            _ => Ok(Change::Made),
        }
    }

    pub(super) fn make<T>(space: Space, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match meet(space)? {
            Change::Made => make(),
            Change::MadeAndFails(kind) => make().and(Err(kind.into())),
        }
    }

    /// Runs `step` with a fault at its change number `at`, from 0. Returns what it returned, and whether it came so far.
    pub fn with<T>(at: usize, fault: Fault, step: impl FnOnce() -> T) -> (T, bool) {
        PLAN.set(Some((at, fault)));
        MADE.set(0);
        let result = step();
        PLAN.set(None);
        (result, MADE.get() > at)
    }

    /// Runs `try_at` with 0, 1, 2 ... until it says that the step has no change of that number. Returns how many it has.
    pub fn for_each_change(mut try_at: impl FnMut(usize) -> bool) -> usize {
        const MORE_THAN_ANY_STEP_HAS: usize = 1_000;
        (0..MORE_THAN_ANY_STEP_HAS)
            .find(|&at| !try_at(at))
            .expect("a step ends")
    }
}
