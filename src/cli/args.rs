use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::config::ConfigArguments;
use super::consume::ConsumeArguments;
use super::group::GroupCommand;
use super::produce::ProduceArguments;
use super::topic::TopicCommand;

/// Where a broker keeps its data if nothing else is said (`log.dirs`).
const DATA_DEFAULT: &str = "./corelog-data";

const EXIT_CODES: &str = "Exit codes:
  0    done; a broker that was asked to stop has flushed everything and stopped cleanly
  1    could not start, or stopped because of an error; the cluster refused, or cannot be reached
  2    wrong arguments, or a setting that is unknown or illegal
  3    what was checked has a fault: preflight says FAIL, or log verify found damage
  128+N  a second signal N ended the process at once (SIGINT: 130, SIGTERM: 143)
  134  a panic ended the process (SIGABRT): a bug; what was confirmed is on disk

Logs go to stderr; RUST_LOG chooses what is logged (such as RUST_LOG=debug or RUST_LOG=corelog::storage=debug,info).";

/// Corelog, a message broker that speaks the Kafka protocol.
#[derive(Debug, Parser)]
#[command(name = "corelog", version, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a broker until SIGTERM or SIGINT; a second signal ends it at once.
    Broker(BrokerArguments),
    /// Check whether a broker can run on this machine, and how to change what is in its way.
    Preflight {
        /// The directory that is meant for the data; it need not exist yet.
        #[arg(long, value_name = "DIR", default_value = DATA_DEFAULT)]
        data: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Look into the log of a broker that does not run.
    Log {
        #[command(subcommand)]
        command: LogCommand,
    },
    /// Topics of a cluster that speaks Kafka's protocol: create, list, describe, alter, delete.
    Topic {
        #[command(subcommand)]
        command: TopicCommand,
    },
    /// Consumer groups of a cluster: list, describe with lag, delete, reset or delete offsets.
    Group {
        #[command(subcommand)]
        command: GroupCommand,
    },
    /// Settings: list all that there are, or show and change those of a topic or broker.
    Config(ConfigArguments),
    /// Send lines as records, from stdin or a file.
    Produce(ProduceArguments),
    /// Print records, from wherever in a topic, alone or as a member of a group.
    Consume(ConsumeArguments),
    /// Print the completions of a shell, such as: source <(corelog completions bash)
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum LogCommand {
    /// Show every batch of a segment, of a partition, or of all partitions; or the entries of an index.
    Dump {
        /// A .log, .index or .timeindex file, a partition's directory, or a broker's data directory.
        #[arg(value_name = "DIR|FILE")]
        path: PathBuf,
        /// Print JSON, one document a line.
        #[arg(long)]
        json: bool,
        /// Show each record too: key, value, headers.
        #[arg(long)]
        records: bool,
    },
    /// Check every CRC, the order of offsets and leader epochs, both indexes and the state files.
    ///
    /// After a crash it may find at the end of a log what the broker's next start cuts off.
    Verify {
        /// A file of a segment, a partition's directory, or a broker's data directory.
        #[arg(value_name = "DIR|FILE")]
        path: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Read each record too, inflating what is compressed.
        #[arg(long)]
        records: bool,
    },
}

#[derive(Args, Debug)]
pub(super) struct BrokerArguments {
    /// A file of settings, one name=value a line.
    #[arg(long, value_name = "FILE.properties")]
    pub(super) config: Option<PathBuf>,
    /// One setting, over the file's; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Where the data is kept: the setting log.dirs [default: ./corelog-data]
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// How logs are written: the setting log.format.
    #[arg(long, value_enum)]
    pub(super) log_format: Option<LogFormatArgument>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormatArgument {
    Human,
    Json,
}

impl BrokerArguments {
    /// What `--set` says, with the flags that are only another way to say it.
    pub(super) fn assignments(&self) -> Vec<String> {
        let format = self.log_format.map(|format| match format {
            LogFormatArgument::Human => "log.format=human".to_owned(),
            LogFormatArgument::Json => "log.format=json".to_owned(),
        });
        self.set.iter().cloned().chain(format).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BrokerConfig;
    use clap::CommandFactory;
    use std::path::Path;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn preflight_looks_where_a_broker_would_put_its_data() {
        assert_eq!(Path::new(DATA_DEFAULT), BrokerConfig::default().log_dir);
    }

    #[test]
    fn a_flag_for_a_setting_wins_over_set() {
        let line = "corelog broker --set log.format=human --set num.partitions=3 --log-format json";
        let Command::Broker(broker) = Arguments::parse_from(line.split(' ')).command else {
            panic!("{line}")
        };
        assert_eq!(
            broker.assignments(),
            ["log.format=human", "num.partitions=3", "log.format=json"]
        );
    }
}
