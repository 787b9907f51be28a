//! The network interface that a connection uses, and the bytes that went through it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

/// Packets between addresses of one machine go through this one, whatever the addresses are.
const LOOPBACK: &str = "lo";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(String);

/// Headers, repeats and everybody else's traffic included. Over loopback every byte is sent and received here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceBytes {
    pub name: String,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl Interface {
    /// Of a connection between these ends. None if the routes do not tell, as with IPv6.
    pub fn between(local: IpAddr, remote: IpAddr) -> Option<Self> {
        if local.to_canonical() == remote.to_canonical() || remote.to_canonical().is_loopback() {
            return Some(Self(LOOPBACK.to_owned()));
        }
        let IpAddr::V4(remote) = remote.to_canonical() else {
            return None;
        };
        route_to(remote, &fs::read_to_string("/proc/net/route").ok()?).map(Self)
    }

    /// So far.
    pub fn bytes(&self) -> Option<InterfaceBytes> {
        bytes_of(&self.0, &fs::read_to_string("/proc/net/dev").ok()?)
    }
}

impl InterfaceBytes {
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name.clone(),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
        }
    }
}

/// Lines: `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`, addresses in hexadecimal as they lie in memory. The narrowest mask
/// that fits wins.
fn route_to(remote: Ipv4Addr, table: &str) -> Option<String> {
    let remote = u32::from_ne_bytes(remote.octets());
    let route = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let address = |field: usize| u32::from_str_radix(fields.get(field)?, 16).ok();
        let (destination, mask) = (address(1)?, address(7)?);
        (remote & mask == destination).then(|| (mask.count_ones(), fields[0].to_owned()))
    };
    let routes = table.lines().skip(1).filter_map(route);
    routes.max_by_key(|(ones, _)| *ones).map(|(_, name)| name)
}

/// Lines: `name: received-bytes packets errs drop fifo frame compressed multicast sent-bytes ...`.
fn bytes_of(name: &str, table: &str) -> Option<InterfaceBytes> {
    let line = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let mut fields = line.split_ascii_whitespace();
    Some(InterfaceBytes {
        name: name.to_owned(),
        received_bytes: fields.next()?.parse().ok()?,
        sent_bytes: fields.nth(7)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_route_names_the_interface() {
        let hex = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let line = |name: &str, destination, mask| {
            format!(
                "{name}\t{}\t0\t3\t0\t0\t0\t{}\t0\t0\t0",
                hex(destination),
                hex(mask)
            )
        };
        let table = [
            "Iface\tDestination\tGateway".to_owned(),
            line("eth0", [0, 0, 0, 0], [0, 0, 0, 0]),
            line("eth1", [10, 1, 0, 0], [255, 255, 0, 0]),
        ]
        .join("\n");
        let route = |address| route_to(address, &table);
        assert_eq!(route(Ipv4Addr::new(10, 1, 2, 3)).as_deref(), Some("eth1"));
        assert_eq!(route(Ipv4Addr::new(10, 2, 2, 3)).as_deref(), Some("eth0"));
        assert_eq!(route_to(Ipv4Addr::new(10, 1, 2, 3), ""), None);
    }

    #[test]
    fn addresses_of_one_machine_meet_on_loopback_and_its_bytes_are_read() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let here = Interface::between(ip("10.0.0.1"), ip("10.0.0.1")).unwrap();
        assert_eq!(
            here,
            Interface::between(ip("127.0.0.1"), ip("127.0.0.2")).unwrap()
        );
        let table = "Inter-| Receive\n face |bytes\n    lo: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n lo2: 3 1 0 0 0 0 0 0 4 1\n";
        let bytes = bytes_of("lo", table).unwrap();
        assert_eq!((bytes.received_bytes, bytes.sent_bytes), (10, 20));
        assert!(here.bytes().is_some());
    }
}
