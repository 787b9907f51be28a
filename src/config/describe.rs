use super::broker::BrokerConfig;
use super::broker_settings::BROKER_SETTINGS;
use super::layers::{Candidate, Source};
use super::overrides::Overrides;
use super::setting::Setting;
use super::topic_settings::TOPIC_SETTINGS;

/// One setting as DescribeConfigs shows it.
#[derive(Clone, Debug)]
pub struct DescribedSetting {
    pub setting: &'static Setting,
    /// `None` is Kafka's null: unset.
    pub value: Option<String>,
    pub source: Source,
    /// Where the value comes from and what would be next, the effective one first.
    pub candidates: Vec<Candidate>,
}

impl BrokerConfig {
    /// Every setting of a topic with these overrides.
    pub fn describe_topic(&self, overrides: &Overrides) -> Vec<DescribedSetting> {
        let describe = |setting: &'static Setting| {
            let own = overrides
                .get(setting.name)
                .map(|value| Candidate::of_topic(setting, value));
            let candidates: Vec<Candidate> = own
                .into_iter()
                .chain(self.layers().topic_candidates(setting))
                .collect();
            let value = candidates
                .first()
                .map(Candidate::converted)
                .or_else(|| setting.default.map(str::to_owned));
            DescribedSetting {
                setting,
                value,
                source: source_of(&candidates),
                candidates,
            }
        };
        TOPIC_SETTINGS.iter().map(describe).collect()
    }

    /// Every setting of this broker. As in Kafka, one that is unset stays null although a synonym supplies its value: what is
    /// shown under a name is what was said under that name.
    pub fn describe_broker(&self) -> Vec<DescribedSetting> {
        let describe = |setting: &'static Setting| {
            let mut candidates = self.layers().candidates(setting);
            let own = candidates
                .iter()
                .position(|candidate| candidate.name == setting.name);
            candidates.drain(..own.unwrap_or(candidates.len()));
            let value = candidates.first().map(|candidate| candidate.value.clone());
            DescribedSetting {
                setting,
                value,
                source: source_of(&candidates),
                candidates,
            }
        };
        BROKER_SETTINGS.iter().map(describe).collect()
    }

    /// What is set online for all brokers, and nothing else: Kafka's answer for the broker named "".
    pub fn describe_all_brokers(&self) -> Vec<DescribedSetting> {
        let mut described = self.describe_broker();
        for setting in &mut described {
            setting
                .candidates
                .retain(|candidate| candidate.source == Source::DynamicDefault);
            setting.value = setting
                .candidates
                .first()
                .map(|candidate| candidate.value.clone());
            setting.source = Source::DynamicDefault;
        }
        described.retain(|setting| setting.value.is_some());
        described
    }
}

fn source_of(candidates: &[Candidate]) -> Source {
    candidates
        .first()
        .map_or(Source::Default, |candidate| candidate.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(described: Vec<DescribedSetting>, name: &str) -> DescribedSetting {
        described
            .into_iter()
            .find(|entry| entry.setting.name == name)
            .expect(name)
    }

    fn candidates(described: &DescribedSetting) -> Vec<(&str, &str, Source)> {
        described
            .candidates
            .iter()
            .map(|c| (c.name, c.value.as_str(), c.source))
            .collect()
    }

    fn broker(file: &[(&str, &str)], cluster: &[(&str, &str)]) -> BrokerConfig {
        let config = BrokerConfig::from_file_settings(file.iter().copied().collect()).unwrap();
        config
            .with_online(&cluster.iter().copied().collect(), &Overrides::default())
            .unwrap()
    }

    #[test]
    fn a_topic_shows_every_setting_with_its_default() {
        let described = BrokerConfig::default().describe_topic(&Overrides::default());
        assert_eq!(described.len(), TOPIC_SETTINGS.len());
        for entry in described {
            assert_eq!(
                entry.value.as_deref(),
                entry.setting.default,
                "{}",
                entry.setting.name
            );
            assert_eq!(entry.source, Source::Default);
        }
    }

    #[test]
    fn a_topics_setting_lists_what_is_behind_it() {
        let config = broker(
            &[("log.retention.hours", "2")],
            &[("log.retention.ms", "7")],
        );
        let inherited = find(config.describe_topic(&Overrides::default()), "retention.ms");
        assert_eq!(
            (inherited.value.as_deref(), inherited.source),
            (Some("7"), Source::DynamicDefault)
        );
        let own = [("retention.ms", "5")].into_iter().collect();
        let own = find(config.describe_topic(&own), "retention.ms");
        assert_eq!(
            (own.value.as_deref(), own.source),
            (Some("5"), Source::Topic)
        );
        let expected = [
            ("retention.ms", "5", Source::Topic),
            ("log.retention.ms", "7", Source::DynamicDefault),
            ("log.retention.hours", "2", Source::Static),
            ("log.retention.hours", "168", Source::Default),
        ];
        assert_eq!(candidates(&own), expected);
    }

    #[test]
    fn a_coarser_unit_is_converted_where_it_takes_effect() {
        let config = broker(&[("log.retention.hours", "2")], &[]);
        let described = find(config.describe_topic(&Overrides::default()), "retention.ms");
        assert_eq!(
            (described.value.as_deref(), described.source),
            (Some("7200000"), Source::Static)
        );
    }

    #[test]
    fn a_broker_shows_what_was_said_under_each_name() {
        let config = broker(&[("log.retention.hours", "2")], &[]);
        let described = config.describe_broker();
        assert_eq!(described.len(), BROKER_SETTINGS.len());
        let unset = find(described.clone(), "log.retention.ms");
        assert_eq!((unset.value, unset.source), (None, Source::Default));
        let set = find(described, "log.retention.hours");
        assert_eq!(
            (set.value.as_deref(), set.source),
            (Some("2"), Source::Static)
        );
    }

    #[test]
    fn all_brokers_show_only_what_was_set_for_all() {
        let config = broker(
            &[("log.retention.hours", "2")],
            &[("log.flush.interval.ms", "9")],
        );
        let described = config.describe_all_brokers();
        assert_eq!(described.len(), 1);
        assert_eq!(described[0].value.as_deref(), Some("9"));
    }
}
