//! A producer's way to one broker.

use rustix::event::{PollFd, PollFlags};

use super::link::Link;

/// The connection to one broker, or when to try again.
pub enum Path {
    Up { link: Box<Link>, free_since_ns: u64 },
    Down { retry_ns: u64 },
}

impl Path {
    pub fn is_ready(&self, in_flight_max: usize) -> bool {
        matches!(self, Self::Up { link, .. } if !link.is_writing() && link.requests_under_way() < in_flight_max)
    }

    pub fn poll_fd(&self) -> Option<PollFd<'_>> {
        match self {
            Self::Up { link, .. } if link.is_writing() => Some(PollFd::from_borrowed_fd(
                link.fd(),
                PollFlags::IN | PollFlags::OUT,
            )),
            Self::Up { link, .. } => Some(PollFd::from_borrowed_fd(link.fd(), PollFlags::IN)),
            Self::Down { .. } => None,
        }
    }

    pub fn is_idle(&self) -> bool {
        !matches!(self, Self::Up { link, .. } if link.requests_under_way() > 0)
    }
}
