use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Metadata;

/// An open file.
#[derive(Debug)]
pub struct File(std::fs::File);

/// How a file is to be opened.
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

impl File {
    /// For reading; it must exist.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        std::fs::File::open(path).map(Self)
    }

    /// For writing; made where it is not there, and emptied where it is.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        std::fs::File::create(path).map(Self)
    }

    pub fn options() -> OpenOptions {
        OpenOptions(std::fs::File::options())
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata().map(Metadata::real)
    }

    /// Cuts the file, or extends it with zeros.
    pub fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.0.set_len(size_bytes)
    }

    /// Returns when content and length survive a power cut. After an error it is not to be asked again.
    pub fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// The same, but for times.
    pub fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    pub fn read_exact_at(&self, out: &mut [u8], position: u64) -> io::Result<()> {
        self.0.read_exact_at(out, position)
    }

    pub fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, position)
    }
}

impl Read for File {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl OpenOptions {
    pub fn read(&mut self, on: bool) -> &mut Self {
        self.0.read(on);
        self
    }

    pub fn write(&mut self, on: bool) -> &mut Self {
        self.0.write(on);
        self
    }

    /// Makes the file where it is not there, and leaves it as it is where it is.
    pub fn create(&mut self, on: bool) -> &mut Self {
        self.0.create(on);
        self
    }

    /// Makes the file, which must not be there.
    pub fn create_new(&mut self, on: bool) -> &mut Self {
        self.0.create_new(on);
        self
    }

    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.0.open(path).map(File)
    }
}
