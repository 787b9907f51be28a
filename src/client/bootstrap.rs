//! How a user names the brokers to begin with.

/// Where a Kafka broker listens if nobody says otherwise.
const DEFAULT_PORT: u16 = 9092;

/// `host:port` of `HOST`, `HOST:PORT`, an IPv6 address or `[address]:port`; without a port it is 9092.
pub fn with_default_port(address: &str) -> String {
    let address = address.trim();
    let has_port = match address.rsplit_once(':') {
        None => false,
        Some((host, _)) if host.starts_with('[') => host.ends_with(']'),
        // More than one colon outside brackets is an IPv6 address.
        Some((host, _)) => !host.contains(':'),
    };
    match has_port {
        true => address.to_owned(),
        false if address.contains(':') && !address.starts_with('[') => {
            format!("[{address}]:{DEFAULT_PORT}")
        }
        false => format!("{address}:{DEFAULT_PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_without_a_port_is_at_kafkas() {
        for (given, meant) in [
            ("broker-1", "broker-1:9092"),
            ("10.0.0.7", "10.0.0.7:9092"),
            ("broker-1:19092", "broker-1:19092"),
            ("[::1]", "[::1]:9092"),
            ("[::1]:19092", "[::1]:19092"),
            ("::1", "[::1]:9092"),
            (" h ", "h:9092"),
        ] {
            assert_eq!(with_default_port(given), meant, "{given}");
        }
    }
}
