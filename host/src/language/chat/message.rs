//! What is said in a conversation, and by whom.

/// Who says something; templates know them by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What a conversation begins with, if anything: how the model is to answer.
    System,
    /// Who asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name in templates and sessions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// By whom.
    pub role: Role,
    /// The text, whatever it holds.
    pub content: String,
}

impl Message {
    /// What someone says.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        let content = content.into();
        Self { role, content }
    }
}
