use super::setting::ValueType;
use crate::model::limits::SETTING_VALUE_BYTES_MAX;

/// What a value must satisfy beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    RatioUpTo1,
    OneOf(&'static [&'static str]),
    /// Each element of a list, none of them twice. The list may be empty.
    ElementsOf(&'static [&'static str]),
    /// Kafka has more values than this broker serves. Any other is refused with the reason, rather than stored and ignored.
    Only {
        value: &'static str,
        reason: &'static str,
    },
    /// A form of its own; the function gives the reason of a refusal.
    Form(fn(&str) -> Result<(), String>),
}

/// Why `raw` is no value of this type that passes the check; `Ok` if it is one.
pub fn check(value_type: ValueType, check: &Check, raw: &str) -> Result<(), String> {
    if raw.len() > SETTING_VALUE_BYTES_MAX {
        return Err(format!(
            "it has {} bytes; at most {SETTING_VALUE_BYTES_MAX} are allowed",
            raw.len()
        ));
    }
    let raw = raw.trim();
    match value_type {
        ValueType::Boolean => drop(parse_boolean(raw)?),
        ValueType::Int => {
            let number = parse_int(raw)?;
            check_range(check, i64::from(number))?;
        }
        ValueType::Long => {
            let number = parse_long(raw)?;
            check_range(check, number)?;
        }
        ValueType::Double => {
            let number = parse_double(raw)?;
            if matches!(check, Check::RatioUpTo1) && !(0.0..=1.0).contains(&number) {
                return Err(format!("{number} is outside 0 to 1"));
            }
        }
        ValueType::String | ValueType::List => {}
    }
    check_text(check, raw)
}

pub fn parse_boolean(raw: &str) -> Result<bool, String> {
    if raw.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if raw.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err("expected true or false".into())
    }
}

pub fn parse_int(raw: &str) -> Result<i32, String> {
    raw.parse()
        .map_err(|_| format!("expected a whole number from {} to {}", i32::MIN, i32::MAX))
}

pub fn parse_long(raw: &str) -> Result<i64, String> {
    raw.parse()
        .map_err(|_| "expected a whole number of at most 64 bits".into())
}

pub fn parse_double(raw: &str) -> Result<f64, String> {
    match raw.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("expected a number".into()),
    }
}

/// The elements of a list value: separated by commas, trimmed, the empty list for an empty value.
pub fn parse_list(raw: &str) -> impl Iterator<Item = &str> {
    raw.split(',')
        .map(str::trim)
        .filter(|element| !element.is_empty())
}

fn check_range(check: &Check, number: i64) -> Result<(), String> {
    match *check {
        Check::AtLeast(min) if number < min => Err(format!("must be at least {min}")),
        Check::Between(min, max) if !(min..=max).contains(&number) => {
            Err(format!("must be from {min} to {max}"))
        }
        _ => Ok(()),
    }
}

fn check_text(check: &Check, raw: &str) -> Result<(), String> {
    match check {
        Check::OneOf(allowed) if !allowed.contains(&raw) => {
            Err(format!("expected one of {}", allowed.join(", ")))
        }
        Check::ElementsOf(allowed) => check_elements(allowed, raw),
        Check::Only { value, reason } if raw != *value => {
            Err(format!("only {value:?} is served: {reason}"))
        }
        Check::Form(form) => form(raw),
        _ => Ok(()),
    }
}

fn check_elements(allowed: &[&str], raw: &str) -> Result<(), String> {
    let elements: Vec<&str> = parse_list(raw).collect();
    for (position, element) in elements.iter().enumerate() {
        if !allowed.contains(element) {
            return Err(format!("{element:?} is not one of {}", allowed.join(", ")));
        }
        if elements[..position].contains(element) {
            return Err(format!("{element:?} stands twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_must_be_of_its_type() {
        let legal = |value_type, raw| check(value_type, &Check::Any, raw).is_ok();
        assert!(legal(ValueType::Boolean, "TRUE"));
        assert!(!legal(ValueType::Boolean, "yes"));
        assert!(legal(ValueType::Int, " -2147483648 "));
        assert!(!legal(ValueType::Int, "2147483648"));
        assert!(legal(ValueType::Long, "9223372036854775807"));
        assert!(!legal(ValueType::Long, "9223372036854775808"));
        assert!(!legal(ValueType::Long, "1.5"));
        assert!(!legal(ValueType::Long, ""));
        assert!(legal(ValueType::Double, "0.25"));
        assert!(!legal(ValueType::Double, "NaN"));
        assert!(!legal(ValueType::Double, "inf"));
    }

    #[test]
    fn a_value_must_pass_its_check() {
        let why = |value_type, check_: &Check, raw| check(value_type, check_, raw).unwrap_err();
        assert_eq!(
            why(ValueType::Int, &Check::AtLeast(1), "0"),
            "must be at least 1"
        );
        assert_eq!(
            why(ValueType::Long, &Check::Between(1, 5), "6"),
            "must be from 1 to 5"
        );
        assert!(why(ValueType::Double, &Check::RatioUpTo1, "1.01").contains("outside 0 to 1"));
        assert!(why(ValueType::String, &Check::OneOf(&["a", "b"]), "c").contains("one of a, b"));
        let list = Check::ElementsOf(&["compact", "delete"]);
        assert!(check(ValueType::List, &list, "delete, compact").is_ok());
        assert!(check(ValueType::List, &list, "").is_ok());
        assert!(why(ValueType::List, &list, "delete,purge").contains("\"purge\""));
        assert!(why(ValueType::List, &list, "delete,delete").contains("twice"));
        let only = Check::Only {
            value: "producer",
            reason: "why",
        };
        assert_eq!(
            why(ValueType::String, &only, "zstd"),
            "only \"producer\" is served: why"
        );
    }

    #[test]
    fn a_value_has_a_bounded_length() {
        let long = "x".repeat(SETTING_VALUE_BYTES_MAX + 1);
        assert!(check(ValueType::String, &Check::Any, &long).is_err());
        assert!(check(ValueType::String, &Check::Any, &long[1..]).is_ok());
    }
}
