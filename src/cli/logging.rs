use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::LogFormat;

/// Sends logs to stderr from here on. `RUST_LOG` chooses what is logged; without it, `info` and above.
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .from_env_lossy();
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match format {
        LogFormat::Human => logs
            .with_target(false)
            .with_ansi(io::stderr().is_terminal())
            .init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
}
