//! One core's memory: a copy larger than the caches, and CRC-32C over one send's worth.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

const COPY_BYTES: usize = 64 * 1024 * 1024;
const CRC_BYTES: usize = 1024 * 1024;

#[derive(Clone, Debug, Serialize)]
pub struct MemoryBaseline {
    pub memcpy_gb_per_s: f64,
    pub crc32c_gb_per_s: f64,
}

pub fn measure(each: Duration) -> MemoryBaseline {
    let source = vec![0x5a_u8; COPY_BYTES];
    let mut target = vec![0_u8; COPY_BYTES];
    MemoryBaseline {
        memcpy_gb_per_s: gb_per_s(each, COPY_BYTES, || {
            black_box(&mut target[..]).copy_from_slice(black_box(&source))
        }),
        crc32c_gb_per_s: gb_per_s(each, CRC_BYTES, || {
            black_box(crc32c::crc32c(black_box(&source[..CRC_BYTES])));
        }),
    }
}

/// At least one round, so that there is always a figure.
fn gb_per_s(how_long: Duration, round_bytes: usize, mut round: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut rounds = 0;
    loop {
        round();
        rounds += 1;
        let elapsed = begin.elapsed();
        if elapsed >= how_long {
            return (rounds * round_bytes) as f64 / 1e9 / elapsed.as_secs_f64();
        }
    }
}
