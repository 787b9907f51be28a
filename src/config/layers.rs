use super::broker_settings::broker_setting;
use super::overrides::Overrides;
use super::setting::{Setting, Synonym};

/// Which layer a value comes from, with the numbers that DescribeConfigs puts on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Set for this topic.
    Topic,
    /// Set online for this broker.
    DynamicBroker,
    /// Set online for all brokers.
    DynamicDefault,
    /// From the properties file or `--set`.
    Static,
    Default,
}

impl Source {
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefault => 3,
            Self::Static => 4,
            Self::Default => 5,
        }
    }
}

/// A value in one layer under one name: the answer to "where does this come from, and what would be next".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: &'static str,
    /// As written under that name, in that name's unit.
    pub value: String,
    pub source: Source,
    factor: i64,
}

impl Candidate {
    pub(super) fn of_topic(setting: &'static Setting, value: &str) -> Self {
        Self {
            name: setting.name,
            value: value.into(),
            source: Source::Topic,
            factor: 1,
        }
    }

    /// The value in the unit of the setting that was asked for: 2 of `log.retention.hours` is 7,200,000 of `retention.ms`.
    /// A negative value is Kafka's "no limit" in every unit.
    pub fn converted(&self) -> String {
        match self.value.trim().parse::<i64>() {
            Ok(number) if number > 0 && self.factor != 1 => {
                number.saturating_mul(self.factor).to_string()
            }
            _ => self.value.clone(),
        }
    }
}

/// The three places of a broker's own settings, above Kafka's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layers {
    pub node: Overrides,
    pub cluster: Overrides,
    pub file: Overrides,
}

impl Layers {
    /// Every value that a broker setting has, the effective one first: layer before layer, and within a layer the setting
    /// itself before its synonyms.
    pub fn candidates(&self, setting: &Setting) -> Vec<Candidate> {
        self.collect(&[&[Synonym::of(setting.name)], setting.synonyms])
    }

    /// The same for a topic setting that the topic itself leaves unset.
    pub fn topic_candidates(&self, setting: &Setting) -> Vec<Candidate> {
        self.collect(&[setting.synonyms])
    }

    /// The effective value of a broker setting.
    pub fn effective(&self, setting: &Setting) -> Option<String> {
        self.candidates(setting).first().map(Candidate::converted)
    }

    /// The effective value of a topic setting that the topic itself leaves unset.
    pub fn topic_effective(&self, setting: &Setting) -> Option<String> {
        let inherited = self
            .topic_candidates(setting)
            .first()
            .map(Candidate::converted);
        inherited.or_else(|| setting.default.map(str::to_owned))
    }

    fn collect(&self, names: &[&[Synonym]]) -> Vec<Candidate> {
        let layers = [
            (Source::DynamicBroker, Some(&self.node)),
            (Source::DynamicDefault, Some(&self.cluster)),
            (Source::Static, Some(&self.file)),
            (Source::Default, None),
        ];
        let mut candidates = Vec::new();
        for (source, overrides) in layers {
            for synonym in names.iter().copied().flatten() {
                let value = match overrides {
                    Some(overrides) => overrides.get(synonym.name),
                    None => broker_setting(synonym.name).and_then(|setting| setting.default),
                };
                if let Some(value) = value {
                    candidates.push(Candidate {
                        name: synonym.name,
                        value: value.into(),
                        source,
                        factor: synonym.factor,
                    });
                }
            }
        }
        candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::topic_settings::topic_setting;

    fn overrides(entries: &[(&str, &str)]) -> Overrides {
        entries.iter().copied().collect()
    }

    fn retention_ms(layers: &Layers) -> Option<String> {
        layers.topic_effective(topic_setting("retention.ms").unwrap())
    }

    #[test]
    fn a_finer_unit_goes_before_a_coarser_one() {
        let mut layers = Layers::default();
        assert_eq!(retention_ms(&layers).as_deref(), Some("604800000"));
        layers.file.set("log.retention.hours", "2");
        assert_eq!(retention_ms(&layers).as_deref(), Some("7200000"));
        layers.file.set("log.retention.minutes", "3");
        assert_eq!(retention_ms(&layers).as_deref(), Some("180000"));
        layers.file.set("log.retention.ms", "4");
        assert_eq!(retention_ms(&layers).as_deref(), Some("4"));
        layers.file = overrides(&[("log.retention.hours", "-1")]);
        assert_eq!(
            retention_ms(&layers).as_deref(),
            Some("-1"),
            "no limit is no limit in every unit"
        );
        layers.file = overrides(&[("log.roll.hours", "2147483647")]);
        let segment_ms = layers.topic_effective(topic_setting("segment.ms").unwrap());
        assert_eq!(segment_ms.as_deref(), Some("7730941129200000"));
    }

    #[test]
    fn what_was_set_online_goes_before_the_file() {
        let mut layers = Layers {
            file: overrides(&[("log.retention.ms", "1")]),
            ..Layers::default()
        };
        layers.cluster.set("log.retention.ms", "2");
        assert_eq!(retention_ms(&layers).as_deref(), Some("2"));
        layers.node.set("log.retention.ms", "3");
        assert_eq!(retention_ms(&layers).as_deref(), Some("3"));
        let sources: Vec<Source> = layers
            .topic_candidates(topic_setting("retention.ms").unwrap())
            .iter()
            .map(|c| c.source)
            .collect();
        assert_eq!(
            sources,
            [
                Source::DynamicBroker,
                Source::DynamicDefault,
                Source::Static,
                Source::Default
            ]
        );
    }
}
