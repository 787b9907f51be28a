//! What a broker tells about itself on its Prometheus page: where its process is on another machine, nothing else tells it.
//!
//! Owns: the request for the page, and which names on it mean what. Must never know: the load, or whether the broker is here. Runs on: the
//! thread that asks, which waits for the answer.

mod exposition;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use self::exposition::{Sample, samples};

/// A page that takes longer is no measurement of the instant at which it was asked for.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);

/// A broker with thousands of partitions has a page of some megabytes.
const PAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Under which names brokers tell the same: Corelog's first, then Kafka's as the JMX exporter shows them with and without its usual rules, also
/// with `lowercaseOutputName`,
/// then those of Prometheus' own client libraries.
const DISK_WRITTEN: [Name; 4] = [
    Name::plain("corelog_disk_write_bytes_total"),
    Name::plain("kafka_server_kafkaserver_linux_disk_write_bytes"),
    Name::jmx("kafka_server_KafkaServer_Value", "linux-disk-write-bytes"),
    Name::jmx("kafka_server_kafkaserver_value", "linux-disk-write-bytes"),
];
const DISK_READ: [Name; 4] = [
    Name::plain("corelog_disk_read_bytes_total"),
    Name::plain("kafka_server_kafkaserver_linux_disk_read_bytes"),
    Name::jmx("kafka_server_KafkaServer_Value", "linux-disk-read-bytes"),
    Name::jmx("kafka_server_kafkaserver_value", "linux-disk-read-bytes"),
];
const NETWORK_RECEIVED: [Name; 2] = [
    Name::plain("corelog_request_bytes_total"),
    Name::plain("process_network_receive_bytes_total"),
];
const NETWORK_SENT: [Name; 2] = [
    Name::plain("corelog_response_bytes_total"),
    Name::plain("process_network_transmit_bytes_total"),
];
const CPU_SECONDS: [Name; 1] = [Name::plain("process_cpu_seconds_total")];
const RSS_BYTES: [Name; 1] = [Name::plain("process_resident_memory_bytes")];
const START_SECONDS: [Name; 1] = [Name::plain("process_start_time_seconds")];

#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    #[error("'{0}' is not a URL as http://10.0.0.1:9644/metrics; only http is spoken")]
    Url(String),
    #[error("no metrics from {url}: {reason}")]
    NoPage { url: String, reason: String },
    #[error("{url} has no process_cpu_seconds_total: it is not the metrics page of a process")]
    NoCpu { url: String },
}

/// Where a broker's page is; without a path it is `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsUrl(String);

impl FromStr for MetricsUrl {
    type Err = MetricsError;

    fn from_str(text: &str) -> Result<Self, MetricsError> {
        let authority_and_path = text
            .strip_prefix("http://")
            .filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
        match authority_and_path {
            Some(rest) if rest.contains('/') => Ok(Self(text.to_owned())),
            Some(_) => Ok(Self(format!("{text}/metrics"))),
            None => Err(MetricsError::Url(text.to_owned())),
        }
    }
}

impl fmt::Display for MetricsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a page told at one instant. None is what it does not tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricsSnapshot {
    pub cpu_s: f64,
    /// When the process was started: counters of another process do not continue.
    pub start_s: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub disk_written_bytes: Option<u64>,
    pub disk_read_bytes: Option<u64>,
    pub network_received_bytes: Option<u64>,
    pub network_sent_bytes: Option<u64>,
}

impl MetricsUrl {
    /// What follows `http://` up to the path: `host` or `host:port`.
    pub fn authority(&self) -> &str {
        let rest = self.0.trim_start_matches("http://");
        rest.split('/').next().unwrap_or(rest)
    }

    pub fn scrape(&self) -> Result<MetricsSnapshot, MetricsError> {
        let failed = |error: ureq::Error| MetricsError::NoPage {
            url: self.0.clone(),
            reason: error.to_string(),
        };
        // A proxy would be another machine's network.
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(SCRAPE_TIMEOUT))
            .proxy(None)
            .build();
        let mut response = ureq::Agent::new_with_config(config)
            .get(&self.0)
            .call()
            .map_err(failed)?;
        let body = response.body_mut().with_config().limit(PAGE_BYTES_MAX);
        let page = body.read_to_string().map_err(failed)?;
        read(&page).ok_or_else(|| MetricsError::NoCpu {
            url: self.0.clone(),
        })
    }
}

/// A metric's name, and the label that picks it out where several share the name.
struct Name {
    metric: &'static str,
    label: Option<(&'static str, &'static str)>,
}

impl Name {
    const fn plain(metric: &'static str) -> Self {
        Self {
            metric,
            label: None,
        }
    }

    const fn jmx(metric: &'static str, name: &'static str) -> Self {
        Self {
            metric,
            label: Some(("name", name)),
        }
    }

    fn is_of(&self, sample: &Sample) -> bool {
        sample.name == self.metric
            && self
                .label
                .is_none_or(|(name, value)| sample.has_label(name, value))
    }
}

/// None without CPU time.
fn read(page: &str) -> Option<MetricsSnapshot> {
    let samples: Vec<_> = samples(page).filter(|it| it.value.is_finite()).collect();
    // Shards and APIs are added up; the first name that is there counts.
    let value = |names: &[Name]| {
        names.iter().find_map(|name| {
            let mut values = samples
                .iter()
                .filter(|it| name.is_of(it))
                .map(|it| it.value);
            let first = values.next()?;
            Some(first + values.sum::<f64>())
        })
    };
    let bytes = |names: &[Name]| value(names).map(|value| value as u64);
    Some(MetricsSnapshot {
        cpu_s: value(&CPU_SECONDS)?,
        start_s: value(&START_SECONDS),
        rss_bytes: bytes(&RSS_BYTES),
        disk_written_bytes: bytes(&DISK_WRITTEN),
        disk_read_bytes: bytes(&DISK_READ),
        network_received_bytes: bytes(&NETWORK_RECEIVED),
        network_sent_bytes: bytes(&NETWORK_SENT),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server of one answer.
    fn serve(status: &'static str, page: &'static str) -> MetricsUrl {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).expect("a request");
            let length = page.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
            )
            .expect("it is taken");
        });
        format!("http://{address}").parse().expect("a URL")
    }

    #[test]
    fn a_page_is_fetched_and_what_shards_tell_is_added_up() {
        let url = serve(
            "200 OK",
            "process_cpu_seconds_total 1.5\nprocess_start_time_seconds 7\n\
             corelog_disk_write_bytes_total{shard=\"0\"} 10\ncorelog_disk_write_bytes_total{shard=\"1\"} 32\n",
        );
        let told = url.scrape().expect("a page");
        assert_eq!((told.cpu_s, told.start_s), (1.5, Some(7.0)));
        assert_eq!(told.disk_written_bytes, Some(42));
        assert_eq!((told.rss_bytes, told.network_sent_bytes), (None, None));
    }

    #[test]
    fn kafkas_disk_counters_are_found_among_others_of_the_same_name() {
        for name in [
            "kafka_server_KafkaServer_Value",
            "kafka_server_kafkaserver_value",
        ] {
            let page = format!(
                "process_cpu_seconds_total 1\n{name}{{name=\"BrokerState\"}} 3.0\n\
                 {name}{{name=\"linux-disk-write-bytes\",}} 4096.0\n"
            );
            let told = read(&page).expect("CPU is there");
            assert_eq!(
                (told.disk_written_bytes, told.disk_read_bytes),
                (Some(4096), None),
                "{name}"
            );
        }
    }

    #[test]
    fn an_answer_that_is_no_metrics_page_is_an_error_that_names_the_url() {
        let other = serve("200 OK", "<html></html>");
        assert!(matches!(other.scrape(), Err(MetricsError::NoCpu { url }) if url == other.0));
        let missing = serve("404 Not Found", "");
        assert!(matches!(missing.scrape(), Err(MetricsError::NoPage { .. })));
    }

    #[test]
    fn a_url_without_a_path_is_the_metrics_page_and_another_scheme_is_refused() {
        let url = |text: &str| text.parse::<MetricsUrl>().map(|url| url.0);
        assert_eq!(url("http://a:1").unwrap(), "http://a:1/metrics");
        assert_eq!(url("http://a:1/m").unwrap(), "http://a:1/m");
        for wrong in ["a:1", "https://a:1", "http://", "http:///metrics"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
