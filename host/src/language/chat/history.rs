//! The conversation so far, and the part that still fits a model's context.

use super::message::{Message, Role};
use super::prompt::Prompts;
use crate::Error;

/// A conversation: an optional system message, then questions and answers in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    messages: Vec<Message>,
    /// Number of messages after the system message that prompts leave out: whole pairs, the oldest.
    left_out: usize,
}

/// The next prompt of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Number of messages that it leaves out and the one before did not.
    pub dropped: usize,
}

impl History {
    /// Returns a conversation without questions, with an optional system message.
    pub fn new(system: Option<&str>) -> Self {
        let system = system.map(|content| Message::new(Role::System, content));
        Self {
            messages: system.into_iter().collect(),
            left_out: 0,
        }
    }

    /// Returns a stored conversation.
    ///
    /// # Errors
    /// [`Error::Options`] if messages do not alternate, or more are left out than there are pairs.
    pub fn of(messages: Vec<Message>, left_out: usize) -> Result<Self, Error> {
        let history = Self { messages, left_out };
        let behind = &history.messages[history.system()..];
        let turns = [Role::User, Role::Assistant].into_iter().cycle();
        let alternate = behind.iter().map(|message| message.role);
        if !behind.len().is_multiple_of(2) || !alternate.eq(turns.take(behind.len())) {
            return Err(Error::options(
                "the messages must be at most one system message, then questions of the user \
                 and answers of the assistant in turn",
            ));
        }
        if !left_out.is_multiple_of(2) || left_out > behind.len() {
            let pairs = behind.len();
            return Err(Error::options(format!(
                "the session leaves out {left_out} of {pairs} messages, but messages can be left out only in pairs"
            )));
        }
        Ok(history)
    }

    /// Returns all messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the number of messages after the system message that prompts leave out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns 1 if there is a system message, else 0.
    fn system(&self) -> usize {
        let first = self.messages.first();
        usize::from(first.is_some_and(|message| message.role == Role::System))
    }

    /// Returns the prompt of a question. If the prompt and `answer` tokens after it need more than `context` positions,
    /// the oldest questions and their answers are left out from now on; the last token of an answer takes no position.
    /// If nothing more can be left out, the answer may have less room. The messages of the history do not change.
    ///
    /// # Errors
    /// [`Error::Options`] for a question that does not even fit alone; those of [`Prompts::tokens`].
    pub fn prompt(
        &mut self,
        prompts: &Prompts<'_>,
        question: &str,
        context: usize,
        answer: usize,
    ) -> Result<Prompt, Error> {
        let system = self.system();
        let before = self.left_out;
        let mut left_out = before;
        loop {
            let mut kept = self.messages[..system].to_vec();
            kept.extend_from_slice(&self.messages[system + left_out..]);
            kept.push(Message::new(Role::User, question));
            let tokens = prompts.tokens(&kept)?;
            let needed = tokens.len().saturating_add(answer.saturating_sub(1));
            let is_last = system + left_out == self.messages.len();
            if needed > context && !is_last {
                left_out += 2;
                continue;
            }
            if tokens.len() > context {
                let tokens = tokens.len();
                return Err(Error::options(format!(
                    "the message needs {tokens} tokens with the template and the system message, \
                     but there is room for {context}; shorten it"
                )));
            }
            self.left_out = left_out;
            let dropped = left_out - before;
            return Ok(Prompt { tokens, dropped });
        }
    }

    /// Adds a question and its answer.
    pub fn add(&mut self, question: String, answer: String) {
        self.messages.push(Message::new(Role::User, question));
        self.messages.push(Message::new(Role::Assistant, answer));
    }
}
