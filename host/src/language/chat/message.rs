//! Messages of a conversation, and their roles.

/// The author of a message; templates use these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The optional start of a conversation: how the model is to answer.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns the name in templates and sessions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Its author.
    pub role: Role,
    /// The text, with any content.
    pub content: String,
}

impl Message {
    /// Returns a message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        let content = content.into();
        Self { role, content }
    }
}
