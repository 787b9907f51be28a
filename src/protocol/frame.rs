//! Splitting a connection's bytes into frames.

/// Every request and response is behind its length, which does not count itself.
pub const SIZE_PREFIX_BYTES: usize = 4;

/// API key, version and correlation id: what every request begins with.
const FRAME_BYTES_MIN: i32 = 8;

/// What stands at the front of the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not even the length is there.
    NoLength,
    /// A frame that is not all there. It takes `size_bytes` in all, its length prefix included.
    Partial { size_bytes: usize },
    /// A whole frame of `size_bytes`, its length prefix included.
    Whole { size_bytes: usize },
}

/// Why a connection speaks no Kafka that is served here; it must be closed, since nothing says where the next frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error(
        "a frame declares a length of {declared}; the smallest request has {FRAME_BYTES_MIN} bytes"
    )]
    TooSmall { declared: i32 },
    #[error("a frame declares {declared} bytes; socket.request.max.bytes is {frame_bytes_max}")]
    TooLarge {
        declared: i32,
        frame_bytes_max: usize,
    },
    #[error("the client speaks {0}, not Kafka's protocol")]
    Greeting(Greeting),
}

/// Protocols whose first bytes are known, and that people point at a Kafka port by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    Http,
    Tls,
    Ssh,
}

impl std::fmt::Display for Greeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Tls => "TLS",
            Self::Ssh => "SSH",
        })
    }
}

impl Greeting {
    /// Read as a length, each of these is beyond any frame that a broker would take, so they are looked for only there.
    fn of(start: [u8; SIZE_PREFIX_BYTES]) -> Option<Self> {
        match &start {
            b"GET " | b"PUT " | b"POST" | b"HEAD" | b"OPTI" | b"DELE" | b"PATC" | b"TRAC"
            | b"CONN" | b"PRI " => Some(Self::Http),
            [0x16, 0x03, 0..=4, _] => Some(Self::Tls),
            b"SSH-" => Some(Self::Ssh),
            _ => None,
        }
    }
}

/// Looks at the front of `received`; the body of a frame must not be awaited before this has accepted its length.
pub fn next(received: &[u8], frame_bytes_max: usize) -> Result<Next, FrameError> {
    let Some(prefix) = received.first_chunk::<SIZE_PREFIX_BYTES>() else {
        return Ok(Next::NoLength);
    };
    let declared = i32::from_be_bytes(*prefix);
    if declared < FRAME_BYTES_MIN {
        return Err(FrameError::TooSmall { declared });
    }
    if declared as usize > frame_bytes_max {
        return Err(match Greeting::of(*prefix) {
            Some(greeting) => FrameError::Greeting(greeting),
            None => FrameError::TooLarge {
                declared,
                frame_bytes_max,
            },
        });
    }
    let size_bytes = SIZE_PREFIX_BYTES + declared as usize;
    Ok(if received.len() < size_bytes {
        Next::Partial { size_bytes }
    } else {
        Next::Whole { size_bytes }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 100 * 1024 * 1024;

    #[test]
    fn a_frame_is_whole_when_its_last_byte_is_there() {
        let mut bytes = vec![0, 0, 0, 10];
        bytes.extend([7; 10]);
        assert_eq!(next(&bytes[..3], MAX), Ok(Next::NoLength));
        assert_eq!(next(&bytes[..4], MAX), Ok(Next::Partial { size_bytes: 14 }));
        assert_eq!(
            next(&bytes[..13], MAX),
            Ok(Next::Partial { size_bytes: 14 })
        );
        assert_eq!(next(&bytes, MAX), Ok(Next::Whole { size_bytes: 14 }));
        bytes.push(0);
        assert_eq!(next(&bytes, MAX), Ok(Next::Whole { size_bytes: 14 }));
    }

    #[test]
    fn a_length_is_refused_before_the_body_is_there() {
        assert_eq!(
            next(&[0xff; 4], MAX),
            Err(FrameError::TooSmall { declared: -1 })
        );
        assert_eq!(
            next(&[0, 0, 0, 7], MAX),
            Err(FrameError::TooSmall { declared: 7 })
        );
        assert_eq!(
            next(&[0, 0, 0, 8], MAX),
            Ok(Next::Partial { size_bytes: 12 })
        );
        let largest = (MAX as i32).to_be_bytes();
        assert_eq!(
            next(&largest, MAX),
            Ok(Next::Partial {
                size_bytes: MAX + 4
            })
        );
        let larger = (MAX as i32 + 1).to_be_bytes();
        let refused = FrameError::TooLarge {
            declared: MAX as i32 + 1,
            frame_bytes_max: MAX,
        };
        assert_eq!(next(&larger, MAX), Err(refused));
    }

    #[test]
    fn greetings_of_other_protocols_are_known_from_four_bytes() {
        for http in ["GET / HTTP/1.1", "POST /", "HEAD /", "PRI * HTTP/2.0"] {
            assert_eq!(
                next(http.as_bytes(), MAX),
                Err(FrameError::Greeting(Greeting::Http)),
                "{http}"
            );
        }
        assert_eq!(
            next(&[0x16, 3, 1, 2, 0, 1], MAX),
            Err(FrameError::Greeting(Greeting::Tls))
        );
        assert_eq!(
            next(b"SSH-2.0-OpenSSH_9.2", MAX),
            Err(FrameError::Greeting(Greeting::Ssh))
        );
    }
}
