//! The process behind a listening port: the port's socket in /proc/net/tcp, the socket's owner in /proc/PID/fd.

use std::fs;
use std::net::SocketAddr;

use super::Pid;

const TCP_LISTEN: &str = "0A";

/// None if nobody listens there, or if the process is another user's.
pub fn pid_listening_on(address: SocketAddr) -> Option<Pid> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, address.port()))
        .collect();
    let sockets: Vec<String> = inodes
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?;
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
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(owns_one)
        .map(Pid)
}

fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let inode = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let listens =
            fields.get(3) == Some(&TCP_LISTEN) && u16::from_str_radix(local_port, 16) == Ok(port);
        listens
            .then(|| fields.get(9).map(|inode| (*inode).to_owned()))
            .flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
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
}
