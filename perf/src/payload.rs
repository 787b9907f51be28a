//! What a record's value is made of, behind the stamp that the audit needs.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::record::STAMP_BYTES;

/// A payload file is held in memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A share of random bytes, zeros behind them: what does not compress, and what does.
    Random {
        random_bytes_ratio: f64,
        /// How many different payloads there are.
        pool_size: u32,
    },
    /// Cut from this file, one message's bytes after the other.
    File(PathBuf),
}

impl Payload {
    pub const RANDOM_BYTES_RATIO_DEFAULT: f64 = 0.5;
    pub const POOL_SIZE_DEFAULT: u32 = 1000;
}

impl Default for Payload {
    fn default() -> Self {
        Self::Random {
            random_bytes_ratio: Self::RANDOM_BYTES_RATIO_DEFAULT,
            pool_size: Self::POOL_SIZE_DEFAULT,
        }
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random {
                random_bytes_ratio,
                pool_size,
            } => write!(
                f,
                "{random_bytes_ratio} random, the rest zero, {pool_size} different"
            ),
            Self::File(path) => write!(f, "from {}", path.display()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("the payload file {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the payload file {path} has {got} bytes: a message of {message_bytes} bytes needs as many, and {FILE_BYTES_MAX} are the most"
    )]
    Size {
        path: PathBuf,
        got: u64,
        message_bytes: usize,
    },
}

/// Payloads ready to be put into batches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PayloadPool {
    Random {
        random_bytes_ratio: f64,
        pool_size: u32,
    },
    /// A file's bytes.
    #[serde(with = "file_bytes")]
    File(Arc<[u8]>),
}

/// As base64.
mod file_bytes {
    use std::sync::Arc;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(D::Error::custom)?;
        Ok(bytes.into())
    }
}

impl PayloadPool {
    pub fn open(payload: &Payload, message_bytes: usize) -> Result<Self, PayloadError> {
        let path = match payload {
            Payload::Random {
                random_bytes_ratio,
                pool_size,
            } => {
                return Ok(Self::Random {
                    random_bytes_ratio: *random_bytes_ratio,
                    pool_size: (*pool_size).max(1),
                });
            }
            Payload::File(path) => path,
        };
        let failed = |source| PayloadError::Read {
            path: path.clone(),
            source,
        };
        let got = fs::metadata(path).map_err(failed)?.len();
        if got < message_bytes as u64 || got > FILE_BYTES_MAX {
            return Err(PayloadError::Size {
                path: path.clone(),
                got,
                message_bytes,
            });
        }
        fs::read(path)
            .map(|bytes| Self::File(bytes.into()))
            .map_err(failed)
    }

    /// As much of it as batches of this many bytes can hold: no more is ever used.
    pub fn cut_to(self, batch_bytes_max: usize, message_bytes: usize) -> Self {
        match self {
            Self::File(bytes) => {
                let used_bytes = bytes.len().min(batch_bytes_max.max(message_bytes));
                Self::File(bytes[..used_bytes].into())
            }
            random @ Self::Random { .. } => random,
        }
    }

    /// The payloads of the records at a batch's places, without their first `STAMP_BYTES`: those of a place
    /// beyond them begin anew. Not more than `count_max`, and not none.
    pub fn fillers(&self, message_bytes: usize, count_max: usize, seed: u64) -> Vec<Vec<u8>> {
        let filler_bytes = message_bytes - STAMP_BYTES;
        match self {
            Self::Random {
                random_bytes_ratio,
                pool_size,
            } => {
                let mut random = SmallRng::seed_from_u64(seed);
                let random_bytes = (filler_bytes as f64 * random_bytes_ratio) as usize;
                let filler = |_| {
                    let mut filler = vec![0; filler_bytes];
                    random.fill_bytes(&mut filler[..random_bytes]);
                    filler
                };
                (0..count_max.min(*pool_size as usize))
                    .map(filler)
                    .collect()
            }
            Self::File(bytes) => bytes
                .chunks_exact(message_bytes)
                .take(count_max)
                .map(|message| message[STAMP_BYTES..].to_vec())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_share_of_each_payload_is_as_asked_and_all_differ() {
        for (random_bytes_ratio, zeros) in [(0.0, 200), (0.25, 150), (1.0, 0)] {
            let pool = PayloadPool::Random {
                random_bytes_ratio,
                pool_size: 5,
            };
            let fillers = pool.fillers(200 + STAMP_BYTES, 100, 1);
            assert_eq!(fillers.len(), 5);
            for filler in &fillers {
                assert!(filler[200 - zeros..].iter().all(|byte| *byte == 0));
                assert_eq!(filler.len(), 200);
            }
            assert_eq!(fillers[0] != fillers[1], random_bytes_ratio > 0.0);
        }
    }

    #[test]
    fn what_a_batch_can_hold_of_a_file_survives_the_way_over_the_wire() {
        let text: Vec<u8> = (0..200u8).collect();
        let pool = PayloadPool::File(text.into());
        let cut = pool.clone().cut_to(90, 40);
        let wire = serde_json::to_string(&cut).unwrap();
        let read: PayloadPool = serde_json::from_str(&wire).unwrap();
        assert_eq!(read.fillers(40, 2, 0), pool.fillers(40, 2, 0));
        assert!(matches!(&read, PayloadPool::File(bytes) if bytes.len() == 90));
    }

    #[test]
    fn a_payload_file_is_cut_into_messages_and_a_short_one_is_refused() {
        let path =
            std::env::temp_dir().join(format!("corelog-perf-payload-{}", std::process::id()));
        let text: Vec<u8> = (0..100u8).collect();
        fs::write(&path, &text).expect("the temporary directory takes a file");
        let (fits, short) = [40, 101]
            .map(|message_bytes| PayloadPool::open(&Payload::File(path.clone()), message_bytes))
            .into();
        fs::remove_file(&path).expect("it was just written");
        assert_eq!(
            fits.unwrap().fillers(40, 100, 0),
            [text[32..40].to_vec(), text[72..80].to_vec()]
        );
        assert!(matches!(short, Err(PayloadError::Size { got: 100, .. })));
    }
}
