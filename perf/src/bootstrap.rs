//! Where the cluster is, as `corelog` is told it: `HOST:PORT`, several with commas, the port 9092 if there is none.

use std::convert::Infallible;

/// The address when nothing names one.
const DEFAULT: &str = "127.0.0.1:9092";

/// Names one for all commands, as for `corelog`.
const VARIABLE: &str = "CORELOG_BOOTSTRAP";

const PORT: &str = "9092";

/// What no flag and no file says.
pub fn unnamed() -> String {
    match std::env::var(VARIABLE) {
        Ok(named) if !named.is_empty() => named,
        _ => DEFAULT.to_owned(),
    }
}

/// A flag's value, every address with its port.
pub fn parse(addresses: &str) -> Result<String, Infallible> {
    Ok(with_ports(addresses))
}

/// Every address with its port.
pub fn with_ports(addresses: &str) -> String {
    let with_port = |address: &str| match address.trim() {
        // Of an address of IPv6 only what stands after the bracket is a port.
        address
            if address.is_empty()
                || address
                    .rsplit(']')
                    .next()
                    .is_some_and(|it| it.contains(':')) =>
        {
            address.to_owned()
        }
        address => format!("{address}:{PORT}"),
    };
    addresses
        .split(',')
        .map(with_port)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_is_one_of_9092() {
        assert_eq!(with_ports("a"), "a:9092");
        assert_eq!(with_ports("a:1, b"), "a:1,b:9092");
        assert_eq!(with_ports("[::1],[::1]:7"), "[::1]:9092,[::1]:7");
        assert_eq!(with_ports(""), "");
    }
}
