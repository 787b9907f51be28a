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
