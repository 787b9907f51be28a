//! A worker serves one run at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long one run waits for the end of another.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Whose run it is.
#[derive(Clone, Default)]
pub struct Occupancy(Arc<Mutex<Option<String>>>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is busy with a run of {by}")]
pub struct Occupied {
    by: String,
}

/// Free again when it is dropped.
#[derive(Debug)]
pub struct Place<'a>(&'a Mutex<Option<String>>);

impl Occupancy {
    /// The run before may just be ending.
    pub fn take(&self, name: &str) -> Result<Place<'_>, Occupied> {
        let until = Instant::now() + WAIT_MAX;
        loop {
            match self.try_take(name) {
                Err(_) if Instant::now() < until => thread::sleep(LOOK_EVERY),
                place => return place,
            }
        }
    }

    fn try_take(&self, name: &str) -> Result<Place<'_>, Occupied> {
        // A session that panicked has left its place.
        let mut by = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*by {
            Some(by) => Err(Occupied { by: by.clone() }),
            None => {
                *by = Some(name.to_owned());
                Ok(Place(&self.0))
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_until_the_first_is_over() {
        let occupancy = Occupancy::default();
        let first = occupancy.take("a").expect("it is free");
        assert_eq!(
            occupancy.take("b").expect_err("it is not free").to_string(),
            "it is busy with a run of a"
        );
        drop(first);
        assert!(occupancy.take("b").is_ok());
    }
}
