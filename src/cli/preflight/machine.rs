use std::fs;

use super::report::Finding;

/// Older kernels lack operations that the executor needs.
const KERNEL_MIN: (u32, u32) = (5, 8);
/// Older kernels are no longer maintained, and their io_uring has known faults.
const KERNEL_ADVISED: (u32, u32) = (5, 15);

pub(super) fn kernel() -> Finding {
    kernel_finding(&rustix::system::uname().release().to_string_lossy())
}

fn kernel_finding(release: &str) -> Finding {
    const CHECK: &str = "kernel";
    const UPGRADE: &str =
        "sudo apt-get install linux-image-generic && sudo reboot (or as your distribution does it)";
    let (minimum, advised) = (version_text(KERNEL_MIN), version_text(KERNEL_ADVISED));
    match version(release) {
        Some(found) if found < KERNEL_MIN => Finding::fail(
            CHECK,
            format!("Linux {release}; at least {minimum} is needed"),
            UPGRADE,
        ),
        Some(found) if found < KERNEL_ADVISED => Finding::warn(
            CHECK,
            format!("Linux {release}; {advised} or newer is better"),
            UPGRADE,
        ),
        // A release that cannot be read is no reason to refuse: what counts is what the other checks find.
        Some(_) | None => Finding::ok(CHECK, format!("Linux {release}")),
    }
}

/// Major and minor of a kernel release such as `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn version_text((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// It changes throughput by a third on some machines, in either direction; so it is told, and never judged.
pub(super) fn congestion_control() -> Finding {
    const CHECK: &str = "congestion control";
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control") {
        Ok(name) => Finding::ok(CHECK, name.trim()),
        Err(error) => Finding::ok(CHECK, format!("not told by the kernel ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn an_old_kernel_fails_an_ageing_one_warns_and_a_strange_one_passes() {
        for (release, status) in [
            ("5.4.0-42-generic", Status::Fail),
            ("5.10.0", Status::Warn),
            ("5.15.1", Status::Ok),
            ("6.18.44-custom", Status::Ok),
            ("weird", Status::Ok),
        ] {
            assert_eq!(kernel_finding(release).status, status, "{release}");
        }
    }
}
