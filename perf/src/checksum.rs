//! CRC-32C of bytes that mostly do not change. The CRC of `a ++ b` follows from those of `a` and `b` and b's
//! length alone, so a batch whose payload was checksummed once costs a few table look-ups a record to seal, not
//! a pass over every byte.

/// Appends one of several fixed runs of bytes, all of one length, to a CRC without reading it again.
#[derive(Clone)]
pub struct FixedTails {
    /// What `tail_bytes` zero bytes make of each byte of a CRC.
    shift: [[u32; 256]; 4],
    tail_crcs: Vec<u32>,
}

impl FixedTails {
    /// At least one tail.
    pub fn new(tails: &[Vec<u8>]) -> Self {
        let tail_bytes = tails[0].len();
        assert!(tails.iter().all(|tail| tail.len() == tail_bytes));
        // Combining with the CRC 0 leaves the shift alone, which is linear: 32 bits span all values.
        let bits: [u32; 32] =
            std::array::from_fn(|bit| crc32c::crc32c_combine(1 << bit, 0, tail_bytes));
        let of_byte = |place: usize, value: usize| {
            (0..8)
                .filter(|bit| value >> bit & 1 == 1)
                .fold(0, |sum, bit| sum ^ bits[place * 8 + bit])
        };
        let shift = std::array::from_fn(|place| std::array::from_fn(|value| of_byte(place, value)));
        Self {
            shift,
            tail_crcs: tails.iter().map(|tail| crc32c::crc32c(tail)).collect(),
        }
    }

    /// The CRC of `head ++ tail` from that of `head`.
    pub fn append(&self, head_crc: u32, tail: usize) -> u32 {
        let [a, b, c, d] = head_crc.to_le_bytes().map(usize::from);
        self.shift[0][a]
            ^ self.shift[1][b]
            ^ self.shift[2][c]
            ^ self.shift[3][d]
            ^ self.tail_crcs[tail]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_tail_gives_the_crc_of_the_whole() {
        for tail_bytes in [0, 1, 7, 8, 996, 100_000] {
            let tail: Vec<u8> = (0..tail_bytes).map(|i: usize| (i * 31 + 7) as u8).collect();
            let fixed = FixedTails::new(&[vec![1; tail_bytes], tail.clone()]);
            for head in [&b""[..], b"a", b"a head of some length"] {
                let whole = [head, &tail].concat();
                assert_eq!(
                    fixed.append(crc32c::crc32c(head), 1),
                    crc32c::crc32c(&whole),
                    "{tail_bytes} after {head:?}"
                );
            }
        }
    }
}
