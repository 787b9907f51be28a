use std::fmt;

use super::check::parse_list;

/// A host, as a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    pub host: String,
    pub port: u16,
}

impl HostPort {
    /// `host:port`, or `[address]:port` for IPv6. The host may be empty: every interface.
    pub fn parse(raw: &str) -> Result<Self, String> {
        let (host, port) = raw
            .rsplit_once(':')
            .ok_or_else(|| format!("{raw:?} is not host:port"))?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest
                .strip_suffix(']')
                .ok_or_else(|| format!("{raw:?} lacks a ]"))?,
            None if host.contains(':') => {
                return Err(format!("{raw:?}: an IPv6 address stands in [ ]"));
            }
            None => host,
        };
        if host.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err(format!("{host:?} is no host"));
        }
        let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
        Ok(Self {
            host: host.into(),
            port,
        })
    }

    /// Whether it stands for every interface, so that nobody can connect to it by this name.
    pub fn is_wildcard(&self) -> bool {
        matches!(self.host.as_str(), "" | "0.0.0.0" | "::")
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One place where clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    pub bind: HostPort,
    /// What a client that came by this listener is told to connect to. Port 0 (any free port) is replaced once it is bound.
    pub advertised: HostPort,
}

/// Puts the values of `listeners`, `advertised.listeners` and `listener.security.protocol.map` together.
pub(super) fn parse_listeners(
    listeners: &str,
    advertised: Option<&str>,
    protocol_map: &str,
) -> Result<Vec<Listener>, String> {
    let advertised = advertised
        .map(parse_endpoints)
        .transpose()?
        .unwrap_or_default();
    let bound = parse_endpoints(listeners)?;
    for (name, _) in &advertised {
        if !bound.iter().any(|(bound_name, _)| bound_name == name) {
            return Err(format!(
                "advertised.listeners has {name}, which listeners has not"
            ));
        }
    }
    let mut result = Vec::new();
    for (name, bind) in bound {
        if !parse_list(protocol_map).any(|entry| entry.split(':').next() == Some(&name)) {
            return Err(format!(
                "listener.security.protocol.map has no entry for {name}"
            ));
        }
        let stated = advertised
            .iter()
            .find(|(stated_name, _)| *stated_name == name)
            .map(|(_, address)| address.clone());
        let advertised = stated.unwrap_or_else(|| bind.clone());
        if advertised.is_wildcard() {
            return Err(format!(
                "{name}://{bind} is every interface, which clients cannot connect to: say in advertised.listeners what they can"
            ));
        }
        result.push(Listener {
            name,
            bind,
            advertised,
        });
    }
    Ok(result)
}

fn parse_endpoints(raw: &str) -> Result<Vec<(String, HostPort)>, String> {
    let mut endpoints: Vec<(String, HostPort)> = Vec::new();
    for element in parse_list(raw) {
        let (name, address) = element
            .split_once("://")
            .ok_or_else(|| format!("{element:?} is not NAME://host:port"))?;
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || !name.bytes().all(legal) {
            return Err(format!("{name:?} is no listener name"));
        }
        let address = HostPort::parse(address)?;
        if endpoints.iter().any(|(other, _)| other == name) {
            return Err(format!("the listener name {name} stands twice"));
        }
        endpoints.push((name.into(), address));
    }
    if endpoints.is_empty() {
        Err("expected at least one NAME://host:port".into())
    } else {
        Ok(endpoints)
    }
}

pub(super) fn check_listeners(raw: &str) -> Result<(), String> {
    parse_endpoints(raw).map(drop)
}

pub(super) fn check_host_port(raw: &str) -> Result<(), String> {
    HostPort::parse(raw).map(drop)
}

pub(super) fn check_protocol_map(raw: &str) -> Result<(), String> {
    for entry in parse_list(raw) {
        match entry.split_once(':') {
            Some((name, "PLAINTEXT")) if !name.is_empty() => {}
            Some((name, protocol)) => {
                return Err(format!(
                    "{name} has the protocol {protocol:?}; only PLAINTEXT is served"
                ));
            }
            None => return Err(format!("{entry:?} is not NAME:PROTOCOL")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT";

    #[test]
    fn a_listener_advertises_itself_unless_told_otherwise() {
        let listeners = parse_listeners(
            "PLAINTEXT://[::1]:9092, INSIDE://0.0.0.0:0",
            Some("INSIDE://broker-1:19092"),
            MAP,
        )
        .unwrap();
        assert_eq!(listeners[0].advertised.to_string(), "[::1]:9092");
        assert_eq!(listeners[1].bind.to_string(), "0.0.0.0:0");
        assert_eq!(listeners[1].advertised.to_string(), "broker-1:19092");
    }

    #[test]
    fn every_interface_needs_an_advertised_listener() {
        for wildcard in [
            "PLAINTEXT://0.0.0.0:9092",
            "PLAINTEXT://:9092",
            "PLAINTEXT://[::]:9092",
        ] {
            let error = parse_listeners(wildcard, None, MAP).unwrap_err();
            assert!(error.contains("advertised.listeners"), "{error}");
        }
    }

    #[test]
    fn listeners_that_cannot_be_served_are_refused() {
        for bad in [
            "",
            "localhost:9092",
            "PLAINTEXT://localhost",
            "PLAINTEXT://::1:9092",
            "PLAINTEXT://a:70000",
            "P L://a:1",
        ] {
            assert!(parse_listeners(bad, None, MAP).is_err(), "{bad:?}");
        }
        assert!(
            parse_listeners("PLAINTEXT://a:1,PLAINTEXT://b:2", None, MAP)
                .unwrap_err()
                .contains("twice")
        );
        assert!(
            parse_listeners("SSL://a:1", None, MAP)
                .unwrap_err()
                .contains("listener.security.protocol.map")
        );
        assert!(
            parse_listeners("PLAINTEXT://a:1", Some("OTHER://b:1"), MAP)
                .unwrap_err()
                .contains("OTHER")
        );
        assert!(
            check_protocol_map("SSL:SSL")
                .unwrap_err()
                .contains("only PLAINTEXT")
        );
    }
}
