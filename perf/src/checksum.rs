//! CRC-32C of bytes of which only a few change. The CRC is linear but for a constant: for `a` and `b` of one length,
//! `crc(a ^ b) = crc(a) ^ crc(b) ^ crc(zeros)`. So each byte of a field at a known place adds its own share to the CRC
//! of the whole, whatever stands around it: a table look-up, not a pass over every byte.

/// What a number of zero bytes behind it make of a share.
#[derive(Clone)]
pub struct Shift {
    /// By the share's bytes.
    shares: [[u32; 256]; 4],
}

impl Shift {
    pub fn new(zero_bytes: usize) -> Self {
        // Linear: 32 bits span all values.
        let bits: [u32; 32] = std::array::from_fn(|bit| {
            // Combining with a CRC of 0 leaves the shift alone.
            crc32c::crc32c_combine(1 << bit, 0, zero_bytes)
        });
        let of_byte = |place: usize, value: usize| {
            (0..8)
                .filter(|bit| value >> bit & 1 == 1)
                .fold(0, |sum, bit| sum ^ bits[place * 8 + bit])
        };
        Self {
            shares: std::array::from_fn(|place| std::array::from_fn(|value| of_byte(place, value))),
        }
    }

    pub fn of(&self, share: u32) -> u32 {
        let [a, b, c, d] = share.to_le_bytes().map(usize::from);
        self.shares[0][a] ^ self.shares[1][b] ^ self.shares[2][c] ^ self.shares[3][d]
    }

    /// The CRC of `head ++ tail` from that of each; this shifts by the tail's length.
    pub fn append(&self, head_crc: u32, tail_crc: u32) -> u32 {
        self.of(head_crc) ^ tail_crc
    }
}

/// By how much the CRC of `field` differs from that of as many zeros.
pub fn share_of<const BYTES: usize>(field: &[u8; BYTES]) -> u32 {
    crc32c::crc32c(field) ^ crc32c::crc32c(&[0; BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i * 31 + 7) as u8).collect()
    }

    #[test]
    fn a_known_tail_is_appended_without_reading_it_again() {
        for tail_bytes in [0, 1, 7, 8, 996, 100_000] {
            let tail = some_bytes(tail_bytes);
            let (shift, tail_crc) = (Shift::new(tail_bytes), crc32c::crc32c(&tail));
            for head in [&b""[..], b"a", b"a head of some length"] {
                let whole = [head, &tail].concat();
                assert_eq!(
                    shift.append(crc32c::crc32c(head), tail_crc),
                    crc32c::crc32c(&whole),
                    "{tail_bytes} after {head:?}"
                );
            }
        }
    }

    #[test]
    fn a_fields_share_turns_the_crc_with_zeros_into_the_crc_with_the_field() {
        for behind_bytes in [0, 1, 17, 5000] {
            let mut bytes = some_bytes(100 + behind_bytes);
            let field = [1, 0, 200, 255, 9];
            bytes[95..100].fill(0);
            let with_zeros = crc32c::crc32c(&bytes);
            bytes[95..100].copy_from_slice(&field);
            assert_eq!(
                with_zeros ^ Shift::new(behind_bytes).of(share_of(&field)),
                crc32c::crc32c(&bytes)
            );
        }
    }
}
