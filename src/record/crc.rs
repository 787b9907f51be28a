//! CRC-32C (Castagnoli), the checksum of record batches.

/// The checksum of `bytes`, as Kafka stores it.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The checksum of a message whose head changed in place, computed without reading the `rest_bytes` behind the head.
///
/// A CRC is linear: the heads' difference, moved past the rest, is the checksums' difference. So stamping a log append time costs
/// well under a microsecond whatever the size of the batch.
pub fn crc32c_with_new_head(old: u32, old_head: &[u8], new_head: &[u8], rest_bytes: usize) -> u32 {
    assert_eq!(
        old_head.len(),
        new_head.len(),
        "a head may change but not grow"
    );
    old ^ ::crc32c::crc32c_combine(crc32c(old_head) ^ crc32c(new_head), 0, rest_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_castagnolis_polynomial() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn a_changed_head_gives_the_checksum_of_a_full_pass() {
        for rest_bytes in [0, 1, 7, 61, 4096, 1_000_003] {
            let mut message = vec![0xa5u8; 40 + rest_bytes];
            message
                .iter_mut()
                .enumerate()
                .for_each(|(i, byte)| *byte ^= (i * 31) as u8);
            let old = crc32c(&message);
            let old_head = message[..40].to_vec();
            message[3..11].copy_from_slice(&0x1234_5678_9abc_def0_u64.to_be_bytes());
            assert_eq!(
                crc32c_with_new_head(old, &old_head, &message[..40], rest_bytes),
                crc32c(&message),
                "{rest_bytes} bytes behind the head"
            );
        }
    }
}
