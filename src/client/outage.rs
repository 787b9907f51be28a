//! A while in which a cluster does not answer, as when its broker is restarted.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::error::ClientError;

/// How long the client rests before it asks again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What passes sooner is not told, unless no broker answers: leaders and coordinators are found in a moment.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Borne for so long from its first error on; an answer ends it.
#[derive(Debug)]
pub struct Outage {
    limit: Duration,
    since: Option<Instant>,
    is_told: bool,
}

impl Outage {
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            is_told: false,
        }
    }

    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Rests after `error` and looks for a broker that answers, so that the same may be asked again. Gives the error back where it will not
    /// pass by itself, and where the time is over. `tell` is called once in each outage.
    pub fn bear(
        &mut self,
        cluster: &mut Cluster,
        error: ClientError,
        tell: impl FnOnce(&ClientError),
    ) -> Result<(), ClientError> {
        let is_outage = error.is_outage();
        if !is_outage && !error.is_transient() {
            return Err(error);
        }
        let lasted = self.since.get_or_insert_with(Instant::now).elapsed();
        if lasted >= self.limit {
            return Err(error);
        }
        if !self.is_told && (is_outage || lasted >= TELL_AFTER) {
            self.is_told = true;
            tell(&error);
        }
        sleep(RETRY_INTERVAL);
        match is_outage {
            // Where still nobody answers, the next question finds that out.
            true => drop(cluster.reconnect()),
            false => cluster.forget_routes(),
        }
        Ok(())
    }

    /// There was an answer. True: it ends an outage that was told.
    pub fn end(&mut self) -> bool {
        self.since = None;
        std::mem::take(&mut self.is_told)
    }
}
