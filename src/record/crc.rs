//! CRC-32C (Castagnoli), the checksum of record batches.

/// The checksum of `bytes`, as Kafka stores it.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The checksum of bytes of which those before `bytes` have the checksum `crc`.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// The checksum of a message whose head changed in place, computed without reading the `rest_bytes` behind the head.
///
/// A CRC is linear: the difference of the heads' checksums, moved past the rest, is the difference of the messages' checksums. So
/// stamping a log append time costs less than a microsecond, whatever the size of the batch.
pub fn crc32c_with_new_head(old: u32, old_head: &[u8], new_head: &[u8], rest_bytes: usize) -> u32 {
    assert_eq!(
        old_head.len(),
        new_head.len(),
        "a head may change but not grow"
    );
    old ^ multiply(
        crc32c(old_head) ^ crc32c(new_head),
        power_of_x_per_byte(rest_bytes),
    )
}

/// Castagnoli's polynomial, bits reversed: bit 31 is the factor of x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x^0.
const ONE: u32 = 1 << 31;

/// x^(2^i) modulo the polynomial, for each i up to the bits of the largest batch.
const POWERS: [u32; 3 + 31] = {
    let mut powers = [ONE >> 1; 3 + 31];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = multiply(powers[i - 1], powers[i - 1]);
        i += 1;
    }
    powers
};

/// The product of two polynomials over GF(2), modulo Castagnoli's.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut factor = ONE;
    while factor != 0 {
        if a & factor != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 {
            b >> 1 ^ POLYNOMIAL
        } else {
            b >> 1
        };
        factor >>= 1;
    }
    product
}

/// x^(8 * bytes): what appending so many zero bytes multiplies a checksum by.
fn power_of_x_per_byte(bytes: usize) -> u32 {
    assert!(bytes < 1 << 31, "a batch of {bytes} bytes does not exist");
    let bits_set = (0..31).filter(|bit| bytes >> bit & 1 == 1);
    bits_set.fold(ONE, |power, bit| multiply(power, POWERS[3 + bit]))
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
        for rest_bytes in [0, 1, 7, 61, 4096, 1_000_003, 40_000_000] {
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
