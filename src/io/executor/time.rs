//! Waiting for time to pass.

use std::future::Future;
use std::time::Duration;

use futures_lite::future;
use glommio::timer::Timer;

/// The time was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timed out")]
pub struct Elapsed;

pub async fn sleep(duration: Duration) {
    Timer::new(duration).await;
}

/// The result of `future`, or `Elapsed` after `limit`; the future is dropped then.
pub async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    let in_time = async { Ok(future.await) };
    let too_late = async {
        sleep(limit).await;
        Err(Elapsed)
    };
    future::or(in_time, too_late).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::executor::block_on;

    #[test]
    fn a_future_that_is_done_in_time_gives_its_result() {
        assert_eq!(
            block_on(timeout(Duration::from_secs(60), async { 3 })),
            Ok(3)
        );
    }

    #[test]
    fn a_future_that_never_ends_is_given_up() {
        let never = future::pending::<()>();
        assert_eq!(
            block_on(timeout(Duration::from_millis(5), never)),
            Err(Elapsed)
        );
    }
}
