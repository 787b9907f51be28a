use std::fmt::Write;

use serde::Serialize;

use crate::config::{BROKER_SETTINGS, Setting, TOPIC_SETTINGS, Unit, Update};

/// One setting, as `corelog config --json` prints it.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    scope: &'static str,
    #[serde(rename = "type")]
    value_type: &'static str,
    /// `null`: unset; the doc says what holds then.
    default: Option<&'static str>,
    /// `null`: it counts nothing.
    unit: Option<&'static str>,
    /// Whether it can be changed while the broker runs.
    online: bool,
    /// The broker settings that supply a value where this one is unset, in the order in which they are asked.
    synonyms: Vec<&'static str>,
    doc: &'static str,
}

impl Listed {
    fn of(scope: &'static str, setting: &'static Setting) -> Self {
        Self {
            name: setting.name,
            scope,
            value_type: setting.value_type.name(),
            default: setting.default,
            unit: (setting.unit != Unit::None).then(|| setting.unit.name()),
            online: setting.update == Update::Online,
            synonyms: setting
                .synonyms
                .iter()
                .map(|synonym| synonym.name)
                .collect(),
            doc: setting.doc,
        }
    }
}

fn all() -> impl Iterator<Item = Listed> {
    let broker = BROKER_SETTINGS
        .iter()
        .map(|setting| Listed::of("broker", setting));
    broker.chain(
        TOPIC_SETTINGS
            .iter()
            .map(|setting| Listed::of("topic", setting)),
    )
}

pub(super) fn json() -> String {
    super::to_json(&all().collect::<Vec<_>>())
}

pub(super) fn text() -> String {
    let mut text = String::new();
    let mut scope = "";
    for listed in all() {
        if listed.scope != scope {
            scope = listed.scope;
            writeln!(text, "# {scope} settings\n").expect("writing to a String does not fail");
        }
        write_setting(&mut text, &listed).expect("writing to a String does not fail");
    }
    text.truncate(text.trim_end().len());
    text
}

fn write_setting(text: &mut String, listed: &Listed) -> std::fmt::Result {
    let default = match listed.default {
        None => "unset",
        Some("") => "empty",
        Some(value) => value,
    };
    write!(text, "{} = {default}", listed.name)?;
    if let Some(unit) = listed.unit {
        write!(text, " {unit}")?;
    }
    let change = if listed.online { "online" } else { "at start" };
    write!(text, "\n    {}; set {change}", listed.value_type)?;
    if !listed.synonyms.is_empty() {
        write!(text, "; if unset: {}", listed.synonyms.join(", "))?;
    }
    writeln!(text, "\n    {}\n", listed.doc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_listed_with_what_it_does() {
        let listed: Vec<Listed> = all().collect();
        assert_eq!(listed.len(), BROKER_SETTINGS.len() + TOPIC_SETTINGS.len());
        for setting in &listed {
            assert!(!setting.doc.is_empty(), "{} has no doc", setting.name);
        }
        let text = text();
        for setting in &listed {
            assert!(
                text.contains(&format!("{} = ", setting.name)),
                "{}",
                setting.name
            );
        }
        let json: serde_json::Value = serde_json::from_str(&json()).unwrap();
        assert_eq!(json.as_array().map(Vec::len), Some(listed.len()));
    }
}
