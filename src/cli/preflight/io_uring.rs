use io_uring::{IoUring, Probe, opcode};

use super::report::Finding;

const CHECK: &str = "io_uring";

/// What the shards' executor submits, and so must find in the kernel (all are there from Linux 5.8).
const OPERATIONS: [(&str, u8); 23] = [
    ("NOP", opcode::Nop::CODE),
    ("READV", opcode::Readv::CODE),
    ("WRITEV", opcode::Writev::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("READ_FIXED", opcode::ReadFixed::CODE),
    ("WRITE_FIXED", opcode::WriteFixed::CODE),
    ("POLL_ADD", opcode::PollAdd::CODE),
    ("POLL_REMOVE", opcode::PollRemove::CODE),
    ("SENDMSG", opcode::SendMsg::CODE),
    ("RECVMSG", opcode::RecvMsg::CODE),
    ("TIMEOUT", opcode::Timeout::CODE),
    ("TIMEOUT_REMOVE", opcode::TimeoutRemove::CODE),
    ("ACCEPT", opcode::Accept::CODE),
    ("LINK_TIMEOUT", opcode::LinkTimeout::CODE),
    ("CONNECT", opcode::Connect::CODE),
    ("FALLOCATE", opcode::Fallocate::CODE),
    ("OPENAT", opcode::OpenAt::CODE),
    ("CLOSE", opcode::Close::CODE),
    ("STATX", opcode::Statx::CODE),
    ("READ", opcode::Read::CODE),
    ("WRITE", opcode::Write::CODE),
    ("SEND", opcode::Send::CODE),
    ("RECV", opcode::Recv::CODE),
];

const RING_ENTRIES: u32 = 8;

/// Sets up a ring and asks it which operations it knows.
pub(super) fn rings_and_operations() -> Finding {
    let ring = match IoUring::new(RING_ENTRIES) {
        Ok(ring) => ring,
        Err(error) => {
            return Finding::fail(
                CHECK,
                format!("a ring cannot be set up: {error}"),
                fix_for(&error),
            );
        }
    };
    let mut probe = Probe::new();
    if let Err(error) = ring.submitter().register_probe(&mut probe) {
        return Finding::fail(
            CHECK,
            format!("its operations cannot be asked for: {error}"),
            UPGRADE,
        );
    }
    let missing: Vec<&str> = OPERATIONS
        .iter()
        .filter(|(_, code)| !probe.is_supported(*code))
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Finding::ok(
            CHECK,
            format!(
                "all {} operations that are used are there",
                OPERATIONS.len()
            ),
        );
    }
    Finding::fail(
        CHECK,
        format!("the kernel lacks {}", missing.join(", ")),
        UPGRADE,
    )
}

const UPGRADE: &str = "install a kernel of 5.15 or newer, such as: sudo apt-get install linux-image-generic && sudo reboot";

fn fix_for(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        // io_uring_disabled, or a seccomp filter as containers have it.
        Some(libc::EPERM | libc::EACCES) => "sudo sysctl -w kernel.io_uring_disabled=0 \
             (in a container: start it with --security-opt seccomp=unconfined)"
            .to_owned(),
        Some(libc::ENOMEM) => {
            "ulimit -l unlimited (needs root; for a systemd service: LimitMEMLOCK=infinity)"
                .to_owned()
        }
        Some(libc::EMFILE | libc::ENFILE) => "ulimit -n $(ulimit -Hn)".to_owned(),
        _ => UPGRADE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_names_the_switch_that_refuses_it() {
        let denied = fix_for(&std::io::Error::from_raw_os_error(libc::EPERM));
        assert!(
            denied.contains("kernel.io_uring_disabled") && denied.contains("seccomp"),
            "{denied}"
        );
        assert_eq!(
            fix_for(&std::io::Error::from_raw_os_error(libc::ENOSYS)),
            UPGRADE
        );
    }
}
