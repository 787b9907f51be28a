use super::check::parse_list;
use crate::model::limits::CORES_MAX;

/// Which cores run shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Every core that the process may use; see the setting `cores`.
    Auto,
    /// In ascending order, each once, at least one.
    List(Vec<usize>),
}

impl Cores {
    /// `auto`, or numbers and ranges: `0-3,6`.
    pub fn parse(raw: &str) -> Result<Self, String> {
        if raw == "auto" {
            return Ok(Self::Auto);
        }
        let mut cores = Vec::new();
        for element in parse_list(raw) {
            let (first, last) = match element.split_once('-') {
                Some((first, last)) => (parse_core(first)?, parse_core(last)?),
                None => (parse_core(element)?, parse_core(element)?),
            };
            if first > last {
                return Err(format!("{element:?} runs backwards"));
            }
            cores.extend(first..=last);
        }
        cores.sort_unstable();
        cores.dedup();
        if cores.is_empty() {
            Err("expected auto or a list such as 0-3,6".into())
        } else {
            Ok(Self::List(cores))
        }
    }
}

pub(super) fn check_cores(raw: &str) -> Result<(), String> {
    Cores::parse(raw).map(drop)
}

fn parse_core(raw: &str) -> Result<usize, String> {
    match raw.trim().parse() {
        Ok(core) if core < CORES_MAX => Ok(core),
        _ => Err(format!(
            "{raw:?} is no core number from 0 to {}",
            CORES_MAX - 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_numbers_and_ranges() {
        assert_eq!(Cores::parse("auto"), Ok(Cores::Auto));
        assert_eq!(
            Cores::parse("6, 0-3,2"),
            Ok(Cores::List(vec![0, 1, 2, 3, 6]))
        );
        for bad in ["", "x", "3-1", "0-", "-1", "99999999999", "0-4294967295"] {
            assert!(Cores::parse(bad).is_err(), "{bad:?}");
        }
    }
}
