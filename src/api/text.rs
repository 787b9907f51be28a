use std::fmt::Display;

use kafka_protocol::messages::TopicName as WireTopicName;
use kafka_protocol::protocol::StrBytes;

use crate::metadata::Topic;

/// Text as the codec wants it.
pub fn text(text: impl Display) -> StrBytes {
    StrBytes::from_string(text.to_string())
}

pub fn name_of(topic: &Topic) -> WireTopicName {
    WireTopicName(text(&topic.name))
}

/// The message beside an error code. It is cut where it quotes much, since a string of the older encodings has at most 32,767
/// bytes.
pub fn message(error: impl Display) -> Option<StrBytes> {
    const CHARACTERS_MAX: usize = 1000;
    let mut message = error.to_string();
    if let Some((end, _)) = message.char_indices().nth(CHARACTERS_MAX) {
        message.truncate(end);
        message.push_str("...");
    }
    Some(StrBytes::from_string(message))
}
