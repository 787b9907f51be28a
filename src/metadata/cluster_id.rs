use std::fmt;

/// The id of a cluster, written as Kafka writes it: the 22 characters of a UUID in unpadded URL-safe base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(u128);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no cluster id: expected 22 characters of URL-safe base64")]
pub struct ClusterIdError(String);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CHARACTERS: u32 = 22;
/// 22 characters of 6 bits are 132 bits: the last 4 are padding.
const PADDING_BITS: u32 = CHARACTERS * 6 - 128;

impl ClusterId {
    /// A new random one. It does not begin with `-`, which a command line would take for an option.
    pub fn random() -> Self {
        loop {
            let id = Self(uuid::Uuid::new_v4().as_u128());
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub fn to_bits(self) -> u128 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, ClusterIdError> {
        let refused = || ClusterIdError(text.into());
        if text.len() != CHARACTERS as usize {
            return Err(refused());
        }
        let mut bits: u128 = 0;
        for (position, character) in text.bytes().enumerate() {
            let six = ALPHABET
                .iter()
                .position(|letter| *letter == character)
                .ok_or_else(refused)? as u128;
            if position + 1 < CHARACTERS as usize {
                bits = bits << 6 | six;
            } else if six & ((1 << PADDING_BITS) - 1) == 0 {
                bits = bits << (6 - PADDING_BITS) | six >> PADDING_BITS;
            } else {
                return Err(refused());
            }
        }
        Ok(Self(bits))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = (0..CHARACTERS)
            .map(|position| {
                let end = (position + 1) * 6;
                let six = if end <= 128 {
                    self.0 >> (128 - end)
                } else {
                    self.0 << (end - 128)
                };
                char::from(ALPHABET[(six & 63) as usize])
            })
            .collect();
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_id_is_written_as_kafka_writes_it() {
        // The same bytes by `base64 -w0`, in the URL-safe alphabet and without its `==`.
        let id = ClusterId::from_bits(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        assert_eq!(id.to_string(), "ABEiM0RVZneImaq7zN3u_w");
        assert_eq!(ClusterId::parse("ABEiM0RVZneImaq7zN3u_w"), Ok(id));
    }

    #[test]
    fn every_cluster_id_reads_back() {
        for _ in 0..1000 {
            let id = ClusterId::random();
            assert_eq!(ClusterId::parse(&id.to_string()), Ok(id), "{id}");
        }
        for bad in [
            "",
            "short",
            "ABEiM0RVZneImaq7zN3u_x",
            "ABEiM0RVZneImaq7zN3u_w=",
            "ABEiM0RVZneImaq7zN3u/w",
            "ääääääääääää",
        ] {
            assert!(ClusterId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
