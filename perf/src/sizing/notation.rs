//! Figures as people write them: 2,100 TB, 500 MB/s, 8.1 days.

const DAY_S: f64 = 86_400.0;

/// At most two decimals below 10, one below 1,000; thousands apart.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 10.0 => 2,
        v if v < 1_000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let grouped = grouped(whole);
    if fraction.is_empty() {
        grouped
    } else {
        format!("{grouped}.{fraction}")
    }
}

fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

pub fn bytes(value: f64) -> String {
    let (unit_bytes, unit) = match value {
        v if v >= 1e12 => (1e12, "TB"),
        v if v >= 1e9 => (1e9, "GB"),
        v if v >= 1e6 => (1e6, "MB"),
        v if v >= 1e3 => (1e3, "KB"),
        _ => (1.0, "bytes"),
    };
    format!("{} {unit}", number(value / unit_bytes))
}

pub fn bytes_per_s(value: f64) -> String {
    let (unit_bytes, unit) = match value {
        v if v >= 1e9 => (1e9, "GB/s"),
        v if v >= 1e6 => (1e6, "MB/s"),
        v if v >= 1e3 => (1e3, "KB/s"),
        _ => (1.0, "bytes/s"),
    };
    format!("{} {unit}", number(value / unit_bytes))
}

pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 2.0 * DAY_S => format!("{} days", number(v / DAY_S)),
        v if v >= 7_200.0 => format!("{} hours", number(v / 3_600.0)),
        v if v >= 300.0 => format!("{} minutes", number(v / 60.0)),
        v => format!("{} s", number(v)),
    }
}

pub fn share(value: f64) -> String {
    format!("{} %", number(value * 100.0))
}

pub fn cost(ns_per_gb: u64) -> String {
    format!("{} CPU-s/GB", number(ns_per_gb as f64 / 1e9))
}

/// A short CPU time.
pub fn cpu_us(ns: u64) -> String {
    format!("{} us", number(ns as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_in_the_text() {
        assert_eq!(bytes(2_100e12), "2,100 TB");
        assert_eq!(bytes(86.4e12), "86.4 TB");
        assert_eq!(bytes_per_s(500e6), "500 MB/s");
        assert_eq!(bytes_per_s(3e9), "3 GB/s");
        assert_eq!(seconds(700_000.0), "8.1 days");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(share(0.5), "50 %");
        assert_eq!(number(999.96), "1,000");
    }
}
