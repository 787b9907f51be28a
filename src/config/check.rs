use super::setting::ValueType;

/// What a value must satisfy beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    RatioUpTo1,
    NotEmpty,
    OneOf(&'static [&'static str]),
    /// Each element of a list, and at least one of them.
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
        Check::NotEmpty if raw.is_empty() => Err("may not be empty".into()),
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
    if parse_list(raw).next().is_none() {
        return Err(format!("expected at least one of {}", allowed.join(", ")));
    }
    match parse_list(raw).find(|element| !allowed.contains(element)) {
        Some(element) => Err(format!("{element:?} is not one of {}", allowed.join(", "))),
        None => Ok(()),
    }
}
