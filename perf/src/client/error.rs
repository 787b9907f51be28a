pub use corelog::client::error::{ClientError, ErrorCode};
