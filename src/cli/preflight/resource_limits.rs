use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::report::Finding;
use crate::broker::descriptor_budget::DescriptorBudget;
use crate::broker::memory_budget::MemoryBudget;
use crate::broker::shard_count;
use crate::config::BrokerConfig;

/// What an executor insists on for its rings.
const LOCKED_MEMORY_BYTES_MIN: u64 = 512 * 1024;

/// Each connection takes one, and so does each log file that is kept open.
const OPEN_FILES_ADVISED: u64 = 16_384;

pub(super) fn locked_memory() -> Finding {
    const CHECK: &str = "locked memory";
    const RAISE: &str = "ulimit -l unlimited (needs root; for a systemd service: LimitMEMLOCK=infinity; \
         for all logins: add '* - memlock unlimited' to /etc/security/limits.conf)";
    match raise(Resource::Memlock) {
        None => Finding::ok(CHECK, "unlimited"),
        Some(bytes) if bytes < LOCKED_MEMORY_BYTES_MIN => {
            let needed = LOCKED_MEMORY_BYTES_MIN / 1024;
            Finding::fail(
                CHECK,
                format!("{} KiB; each shard's rings need {needed} KiB", bytes / 1024),
                RAISE,
            )
        }
        Some(bytes) => Finding::ok(CHECK, format!("{} KiB", bytes / 1024)),
    }
}

pub(super) fn open_files(config: &BrokerConfig) -> Finding {
    const CHECK: &str = "open files";
    const RAISE: &str = "ulimit -Hn 1048576 && ulimit -n 1048576 (needs root; for a systemd service: LimitNOFILE=1048576; \
         for all logins: add '* - nofile 1048576' to /etc/security/limits.conf)";
    let budget = match DescriptorBudget::of_process(config, shard_count(config)) {
        Ok(budget) => budget,
        Err(too_few) => return Finding::fail(CHECK, too_few.to_string(), RAISE),
    };
    let found = format!(
        "at most {}: {} for connections, {} for segment files",
        budget.limit,
        budget.connections,
        budget.segments()
    );
    if budget.limit < OPEN_FILES_ADVISED {
        let found = format!(
            "{found}; with many partitions or connections, files are opened and closed again and again"
        );
        return Finding::warn(CHECK, found, RAISE);
    }
    Finding::ok(CHECK, found)
}

pub(super) fn memory(config: &BrokerConfig) -> Finding {
    const CHECK: &str = "memory";
    const RAISE: &str = "give the machine or the container more memory (docker run --memory; for a systemd service: MemoryMax), \
         or the broker fewer cores (cores)";
    let connections_max = config.connections_max as usize;
    let budget = match MemoryBudget::of_process(config, shard_count(config), connections_max) {
        Ok(budget) => budget,
        Err(too_little) => return Finding::fail(CHECK, too_little.to_string(), RAISE),
    };
    match budget.is_plenty {
        true => Finding::ok(CHECK, budget.told()),
        false => {
            let found = format!("{}; with more the caches would be larger", budget.told());
            Finding::warn(CHECK, found, RAISE)
        }
    }
}

/// Raises the soft limit to the hard one and returns what then holds; `None` is unlimited.
fn raise(resource: Resource) -> Option<u64> {
    let limit = getrlimit(resource);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(resource, raised) {
        Ok(()) => limit.maximum,
        // A sandbox may forbid even this; then the soft limit is what there is.
        Err(_) => limit.current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
        open_files(&BrokerConfig::default());
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
