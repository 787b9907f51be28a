//! Times and durations as people write them.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp};

use crate::model::TimestampMs;

/// `500ms`, `10s`, `1m30s`, `2h`, `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let span: jiff::Span = text
        .parse()
        .map_err(|_| "not a duration, as 500ms, 10s, 1m30s, 2h or 7d".to_owned())?;
    span.to_duration(SpanRelativeTo::days_are_24_hours())
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| "a duration has days and smaller units, and is not negative".to_owned())
}

/// A duration that is not zero.
pub(super) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout = parse_duration(text)?;
    match timeout.is_zero() {
        true => Err("0 would be over at once".to_owned()),
        false => Ok(timeout),
    }
}

/// A moment: ISO 8601 (UTC where no zone is given), milliseconds since 1970, or how long ago.
pub(super) fn parse_time(text: &str) -> Result<TimestampMs, String> {
    parse_time_at(text, Timestamp::now())
}

fn parse_time_at(text: &str, now: Timestamp) -> Result<TimestampMs, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .map(TimestampMs)
            .map_err(|_| "more milliseconds than there can be".to_owned());
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(TimestampMs(moment.as_millisecond()));
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        let moment = civil
            .to_zoned(TimeZone::UTC)
            .map_err(|error| error.to_string())?;
        return Ok(TimestampMs(moment.timestamp().as_millisecond()));
    }
    match parse_duration(text) {
        Ok(ago) => Ok(TimestampMs(now.as_millisecond() - ago.as_millis() as i64)),
        Err(_) => Err(
            "not a time: 2026-11-30T08:00:00Z, milliseconds since 1970, or how long ago, as 2h"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_iso_milliseconds_or_how_long_ago() {
        let now = Timestamp::from_millisecond(1_000_000_000_000).unwrap();
        let at = |text| parse_time_at(text, now).map(|time| time.0);
        assert_eq!(at("2001-09-09T01:46:40Z"), Ok(1_000_000_000_000));
        assert_eq!(at("2001-09-09T03:46:40+02:00"), Ok(1_000_000_000_000));
        assert_eq!(at("2001-09-09T01:46:40.25"), Ok(1_000_000_000_250));
        assert_eq!(at("2001-09-09"), Ok(999_993_600_000));
        assert_eq!(at("123"), Ok(123));
        assert_eq!(at("1h30m"), Ok(1_000_000_000_000 - 90 * 60_000));
        assert_eq!(at("2d"), Ok(1_000_000_000_000 - 2 * 86_400_000));
        for wrong in ["", "yesterday", "-1h", "99999999999999999999", "2026-13-01"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_needs_its_unit_and_is_not_negative() {
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["10", "-1s", "1mo", "fast"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_timeout("1s"), Ok(Duration::from_secs(1)));
        assert!(parse_timeout("0s").is_err());
    }
}
