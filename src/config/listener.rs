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

/// The settings that must agree about listeners, one of which does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenerSetting {
    Listeners,
    Advertised,
}

impl ListenerSetting {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Listeners => "listeners",
            Self::Advertised => "advertised.listeners",
        }
    }
}

/// Puts the values of `listeners`, `advertised.listeners` and `listener.security.protocol.map` together; or says which of them is
/// wrong, and why.
pub(super) fn parse_listeners(
    listeners: &str,
    advertised: Option<&str>,
    protocol_map: &str,
) -> Result<Vec<Listener>, (ListenerSetting, String)> {
    let of_listeners = |reason| (ListenerSetting::Listeners, reason);
    let of_advertised = |reason| (ListenerSetting::Advertised, reason);
    let advertised = advertised
        .map(parse_endpoints)
        .transpose()
        .map_err(of_advertised)?
        .unwrap_or_default();
    let bound = parse_endpoints(listeners).map_err(of_listeners)?;
    for (name, _) in &advertised {
        if !bound.iter().any(|(bound_name, _)| bound_name == name) {
            return Err(of_advertised(format!(
                "it has {name}, which listeners has not"
            )));
        }
    }
    let mut result = Vec::new();
    for (name, bind) in bound {
        match protocol_of(protocol_map, &name) {
            Some("PLAINTEXT") => {}
            Some(protocol) => {
                return Err(of_listeners(format!(
                    "{name} has the protocol {protocol} in listener.security.protocol.map; only PLAINTEXT is served"
                )));
            }
            None => {
                return Err(of_listeners(format!(
                    "listener.security.protocol.map has no entry for {name}"
                )));
            }
        }
        let stated = advertised
            .iter()
            .find(|(stated_name, _)| *stated_name == name)
            .map(|(_, address)| address.clone());
        let is_stated = stated.is_some();
        let advertised = stated.unwrap_or_else(|| bind.clone());
        if advertised.is_wildcard() {
            let what = format!(
                "{name}://{advertised} is every interface, which clients cannot connect to"
            );
            return Err(match is_stated {
                true => of_advertised(format!("{what}: say the address that they are to use")),
                false => of_listeners(format!("{what}: say in advertised.listeners what they can")),
            });
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
            Some((name, protocol)) if !name.is_empty() && !protocol.is_empty() => {}
            _ => return Err(format!("{entry:?} is not NAME:PROTOCOL")),
        }
    }
    Ok(())
}

/// What the map says of the listener.
fn protocol_of<'a>(map: &'a str, listener: &str) -> Option<&'a str> {
    parse_list(map)
        .filter_map(|entry| entry.split_once(':'))
        .find(|(name, _)| *name == listener)
        .map(|(_, protocol)| protocol)
}

/// The listeners but for those of these names.
pub(super) fn without(listeners: &str, names: &str) -> String {
    let is_kept = |element: &&str| {
        let name = element.split_once("://").map_or("", |(name, _)| name);
        !parse_list(names).any(|other| other == name)
    };
    parse_list(listeners)
        .filter(is_kept)
        .collect::<Vec<_>>()
        .join(",")
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
            let (setting, error) = parse_listeners(wildcard, None, MAP).unwrap_err();
            assert_eq!(setting, ListenerSetting::Listeners);
            assert!(error.contains("advertised.listeners"), "{error}");
            let (setting, _) =
                parse_listeners(wildcard, Some("PLAINTEXT://0.0.0.0:9092"), MAP).unwrap_err();
            assert_eq!(setting, ListenerSetting::Advertised);
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
                .1
                .contains("twice")
        );
        assert!(
            parse_listeners("SSL://a:1", None, MAP)
                .unwrap_err()
                .1
                .contains("listener.security.protocol.map")
        );
        assert!(
            parse_listeners("PLAINTEXT://a:1", Some("OTHER://b:1"), MAP)
                .unwrap_err()
                .1
                .contains("OTHER")
        );
        assert!(
            parse_listeners("SSL://a:1", None, "SSL:SSL")
                .unwrap_err()
                .1
                .contains("only PLAINTEXT")
        );
        assert!(check_protocol_map("SSL:SSL,PLAINTEXT:PLAINTEXT").is_ok());
        assert!(check_protocol_map("SSL").is_err() && check_protocol_map(":SSL").is_err());
    }

    #[test]
    fn listeners_can_be_left_out_by_name() {
        let all = "PLAINTEXT://:9092, CONTROLLER://:9093,X://h:1";
        assert_eq!(without(all, "CONTROLLER,Y"), "PLAINTEXT://:9092,X://h:1");
        assert_eq!(without(all, "PLAINTEXT,CONTROLLER,X"), "");
    }
}
