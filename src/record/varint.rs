//! Zigzag variable-length integers, as record fields have them.

/// The longest `i32`.
pub const I32_BYTES_MAX: usize = 5;

/// Reads an `i32` of 1 to 5 bytes at the front of `rest` and moves past it. `None`: cut short, or longer than an `i32` can be.
#[inline]
pub fn read_i32(rest: &mut &[u8]) -> Option<i32> {
    match **rest {
        [first, ..] if first < 0x80 => {
            *rest = &rest[1..];
            Some(unzigzag(u64::from(first)) as i32)
        }
        [first, second, ..] if second < 0x80 => {
            *rest = &rest[2..];
            Some(unzigzag(u64::from(first & 0x7f) | u64::from(second) << 7) as i32)
        }
        _ => read_long(rest, I32_BYTES_MAX)
            .and_then(|value| u32::try_from(value).ok())
            .map(|value| unzigzag(value.into()) as i32),
    }
}

/// The longest `i64`.
pub const I64_BYTES_MAX: usize = 10;

/// Reads an `i64` of 1 to 10 bytes at the front of `rest` and moves past it. `None`: cut short, or longer than an `i64` can be.
#[inline]
pub fn read_i64(rest: &mut &[u8]) -> Option<i64> {
    match **rest {
        [first, ..] if first < 0x80 => {
            *rest = &rest[1..];
            Some(unzigzag(u64::from(first)))
        }
        _ => read_long(rest, I64_BYTES_MAX).map(unzigzag),
    }
}

fn read_long(rest: &mut &[u8], bytes_max: usize) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in rest.iter().take(bytes_max).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *rest = &rest[i + 1..];
            return Some(value);
        }
    }
    None
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

pub fn write(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes `value` takes.
pub fn size_bytes(value: i64) -> usize {
    let zigzag = (value << 1 ^ value >> 63) as u64;
    ((64 - (zigzag | 1).leading_zeros()) as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(long: i64, int: i32) {
            for (value, fits_i32) in [(long, i32::try_from(long).is_ok()), (int.into(), true)] {
                let mut out = Vec::new();
                write(&mut out, value);
                prop_assert_eq!(out.len(), size_bytes(value));
                out.push(0xff);
                let mut rest = &out[..];
                prop_assert_eq!(read_i64(&mut rest), Some(value));
                prop_assert_eq!(rest, &[0xff][..]);
                let mut rest = &out[..];
                prop_assert_eq!(read_i32(&mut rest), fits_i32.then_some(value as i32));
            }
        }
    }

    #[test]
    fn an_overlong_or_cut_number_is_none() {
        assert_eq!(read_i32(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0][..]), None);
        assert_eq!(read_i32(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(read_i32(&mut &[0x80][..]), None);
        assert_eq!(read_i32(&mut &[][..]), None);
        assert_eq!(read_i64(&mut &[0xff; 11][..]), None);
        assert_eq!(
            read_i64(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]),
            None
        );
    }
}
