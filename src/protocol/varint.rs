//! Unsigned variable-length integers, as flexible versions have them for lengths, counts and tags.

use bytes::BufMut;

/// Reads 1 to 5 bytes at the front of `rest` and moves past them. `None`: cut short, or longer than a `u32` can be.
pub fn read(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for (i, &byte) in rest.iter().take(5).enumerate() {
        if i == 4 && byte > 0x0f {
            return None;
        }
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *rest = &rest[i + 1..];
            return Some(value);
        }
    }
    None
}

pub fn write(out: &mut impl BufMut, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for value in [
            0,
            1,
            0x7f,
            0x80,
            0x3fff,
            0x4000,
            0x0fff_ffff,
            0x1000_0000,
            u32::MAX,
        ] {
            let mut out = Vec::new();
            write(&mut out, value);
            let mut rest = &out[..];
            assert_eq!(read(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(read(&mut &out[..out.len() - 1]), None, "{value} cut short");
        }
    }

    #[test]
    fn a_number_beyond_32_bits_is_none() {
        assert_eq!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(read(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0][..]), None);
    }
}
