use rkyv::util::AlignedVec;

/// What stands around the body of our own on-disk files, little-endian:
///
/// ```text
///  0       4         8             12      16
/// | magic | version | body length | CRC-32 | body (rkyv) ...
/// ```
///
/// The CRC (IEEE, crc32fast) covers version, length and body. Nothing may follow the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumFrame {
    pub magic: [u8; 4],
    pub version: u32,
}

const HEAD_BYTES: usize = 16;

/// Why a file is not one that we wrote, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameDamage {
    #[error("{size_bytes} bytes are too few")]
    TooShort { size_bytes: usize },
    #[error("it starts with other bytes than ours")]
    Magic,
    #[error("it has format version {found}; this program reads version {expected}")]
    Version { found: u32, expected: u32 },
    #[error("it declares a body of {declared_bytes} bytes and has {actual_bytes}")]
    Length {
        declared_bytes: usize,
        actual_bytes: usize,
    },
    #[error("its checksum does not fit")]
    Checksum,
    #[error("its body does not decode")]
    Body,
}

impl ChecksumFrame {
    pub fn wrap(self, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).expect("a body of our own files is far below 4 GiB");
        let mut file = Vec::with_capacity(HEAD_BYTES + body.len());
        file.extend_from_slice(&self.magic);
        file.extend_from_slice(&self.version.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(body);
        let crc = checksum(&file);
        file[12..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
        file
    }

    /// The body, checked and copied to where rkyv may read it.
    pub fn unwrap(self, file: &[u8]) -> Result<AlignedVec, FrameDamage> {
        let Some((head, body)) = file.split_first_chunk::<HEAD_BYTES>() else {
            return Err(FrameDamage::TooShort {
                size_bytes: file.len(),
            });
        };
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if head[..4] != self.magic {
            return Err(FrameDamage::Magic);
        }
        if word(8) as usize != body.len() {
            return Err(FrameDamage::Length {
                declared_bytes: word(8) as usize,
                actual_bytes: body.len(),
            });
        }
        if checksum(file) != word(12) {
            return Err(FrameDamage::Checksum);
        }
        // After the checksum, so that a flipped bit is not reported as a file of the future.
        if word(4) != self.version {
            return Err(FrameDamage::Version {
                found: word(4),
                expected: self.version,
            });
        }
        let mut aligned = AlignedVec::with_capacity(body.len());
        aligned.extend_from_slice(body);
        Ok(aligned)
    }
}

fn checksum(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[4..12]);
    hasher.update(&file[HEAD_BYTES..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: ChecksumFrame = ChecksumFrame {
        magic: *b"TEST",
        version: 3,
    };

    #[test]
    fn a_body_comes_back() {
        assert_eq!(
            FRAME.unwrap(&FRAME.wrap(b"body")).unwrap().as_slice(),
            b"body"
        );
        assert_eq!(FRAME.unwrap(&FRAME.wrap(b"")).unwrap().as_slice(), b"");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let file = FRAME.wrap(b"a body of some length");
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(FRAME.unwrap(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..file.len() {
            assert!(FRAME.unwrap(&file[..length]).is_err(), "{length} bytes");
        }
        let longer = [file.as_slice(), b"x"].concat();
        assert!(matches!(
            FRAME.unwrap(&longer),
            Err(FrameDamage::Length { .. })
        ));
    }

    #[test]
    fn another_version_is_told_apart_from_damage() {
        let newer = ChecksumFrame {
            version: 4,
            ..FRAME
        }
        .wrap(b"body");
        assert_eq!(
            FRAME.unwrap(&newer).err(),
            Some(FrameDamage::Version {
                found: 4,
                expected: 3
            })
        );
    }
}
