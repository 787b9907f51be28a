//! Small files and directories by calls that block: on a blocking thread (`io::blocking::run`), during a start, in a tool. The names and the
//! errors are those of `std::fs`.

mod directory;
mod file;
mod metadata;

pub use directory::{
    DirEntry, ReadDir, create_dir, create_dir_all, hard_link, is_dir, metadata, read, read_dir,
    remove_dir, remove_dir_all, remove_file, rename, try_exists,
};
pub use file::{File, OpenOptions};
pub use metadata::Metadata;
