//! The process behind a listening address: its socket in /proc/net/tcp, the socket's owner in /proc/PID/fd.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Pid;

const TCP_LISTEN: &str = "0A";

/// None if nobody listens there, or if the process is another user's. Brokers may share a port on different addresses: who listens on the
/// very address comes before who listens on all of them.
pub fn pid_listening_on(address: SocketAddr) -> Option<Pid> {
    let listening: Vec<Listening> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table))
        .filter(|it| it.port == address.port())
        .collect();
    let ip = address.ip().to_canonical();
    let on = |wanted: &dyn Fn(IpAddr) -> bool| {
        let sockets: Vec<String> = listening
            .iter()
            .filter(|it| wanted(it.ip))
            .map(|it| format!("socket:[{}]", it.inode))
            .collect();
        (!sockets.is_empty())
            .then(|| owner_of_any(&sockets))
            .flatten()
    };
    on(&|it| it == ip).or_else(|| on(&|it| it.is_unspecified()))
}

fn owner_of_any(sockets: &[String]) -> Option<Pid> {
    let owns_one = |pid: &u32| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        let mut links =
            descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
        links.any(|link| {
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        })
    };
    fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(owns_one)
        .map(Pid)
}

struct Listening {
    ip: IpAddr,
    port: u16,
    inode: String,
}

fn listening(table: &str) -> Vec<Listening> {
    let socket = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (ip, port) = fields.get(1)?.rsplit_once(':')?;
        (fields.get(3) == Some(&TCP_LISTEN)).then_some(())?;
        Some(Listening {
            ip: ip_of(ip)?,
            port: u16::from_str_radix(port, 16).ok()?,
            inode: (*fields.get(9)?).to_owned(),
        })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Words of four bytes as they lie in memory, each written as a hexadecimal number.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_owner_of_a_listening_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(pid_listening_on(address), Some(Pid::this()));
        drop(listener);
        assert_eq!(pid_listening_on(address), None);
    }

    #[test]
    fn an_address_is_read_as_it_lies_in_memory() {
        let hex = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        assert_eq!(
            ip_of(&hex([127, 0, 0, 2])),
            Some("127.0.0.2".parse().unwrap())
        );
        let mapped = [[0; 4], [0; 4], [0, 0, 0xff, 0xff], [10, 0, 0, 1]];
        let mapped = mapped.map(hex).concat();
        assert_eq!(ip_of(&mapped), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(ip_of("0"), None);
    }

    #[test]
    fn a_listener_on_another_address_of_the_same_port_is_not_taken_for_the_broker() {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(
            pid_listening_on(SocketAddr::from(([127, 0, 0, 3], port))),
            None
        );
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        let address = SocketAddr::from(([127, 0, 0, 3], port));
        assert_eq!(pid_listening_on(address), Some(Pid::this()));
    }
}
