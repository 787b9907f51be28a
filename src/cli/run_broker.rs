use std::sync::Arc;

use super::args::BrokerArguments;
use super::exit::{CliError, Outcome};
use super::preflight::{self, Status};
use super::recovery_bar::RecoveryBar;
use super::{logging, signals};
use crate::broker::Broker;
use crate::config::{BrokerConfig, Loaded};

/// Runs a broker until it was asked to stop and has done so.
pub(super) fn run(arguments: BrokerArguments) -> Result<Outcome, CliError> {
    let Loaded {
        config,
        without_effect,
    } = Loaded::from_command_line(
        arguments.config.as_deref(),
        &arguments.assignments(),
        arguments.data.as_deref(),
    )?;
    logging::start(config.log_format);
    if !without_effect.is_empty() {
        tracing::warn!(
            "settings of Apache Kafka that make no difference here: {}",
            without_effect.join(", ")
        );
    }
    check_machine(&config)?;
    let (node, data) = (config.node_id, config.log_dir.clone());
    let broker = Arc::new(Broker::start(config, &RecoveryBar::default())?);
    let asked = broker.clone();
    signals::on_stop_signal(move || asked.stop()).map_err(CliError::Signals)?;
    let clients: Vec<String> = broker.addresses().iter().map(ToString::to_string).collect();
    tracing::info!(
        %node,
        shards = broker.shard_count(),
        data = %data.display(),
        "ready: Kafka clients on {}, status page on http://{}/",
        clients.join(", "),
        broker.admin_address(),
    );
    broker.wait()?;
    tracing::info!("stopped cleanly");
    Ok(Outcome::Done)
}

/// Refuses only what cannot work; what could be better is logged with its remedy.
fn check_machine(config: &BrokerConfig) -> Result<(), CliError> {
    let report = preflight::run(&config.log_dir, config);
    for finding in report.with_status(Status::Warn) {
        tracing::warn!(
            fix = finding.fix,
            "preflight: {}: {}",
            finding.check,
            finding.found
        );
    }
    let failed: Vec<String> = report
        .with_status(Status::Fail)
        .map(ToString::to_string)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(CliError::Preflight(
        failed.join("\n"),
        config.log_dir.display().to_string(),
    ))
}
