//! The conversation: messages, and their answers as they come.

use serde::Serialize;
use tercet_host::Error;
use tercet_host::engine::FlowEngine;
use tercet_host::language::chat::{Answer, CachedTokens, History, Prompts};
use tercet_host::language::tokenizer::Specials;
use tercet_host::language::{Decoder, Drafter, Generation};

use super::lines::Lines;
use super::saved::Saved;
use crate::failure::Failure;
use crate::interrupt::Answering;
use crate::language::rate;
use crate::{drafting, format, output};

/// The report of one answer.
#[derive(Debug, Serialize)]
struct Report<'a> {
    text: &'a str,
    tokens: &'a [u32],
    end: &'static str,
    digest: String,
    prompt_tokens: usize,
    cached_tokens: usize,
    dropped_messages: usize,
    prompt_seconds: f64,
    prompt_tokens_per_second: Option<f64>,
    decode_seconds: f64,
    decode_tokens_per_second: Option<f64>,
    drafted_tokens: usize,
    accepted_tokens: usize,
}

/// The totals of all answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    answers: usize,
    taken: usize,
    cached: usize,
    prompt: f64,
    drawn: usize,
    decode: f64,
    drafted: usize,
    accepted: usize,
}

/// A conversation so far: if another engine takes over, it continues from here.
pub(super) struct Talk<'a> {
    pub(super) prompts: Prompts<'a>,
    pub(super) history: History,
    pub(super) lines: Lines,
    pub(super) saved: Option<Saved>,
    /// How answers are drawn, with the maximum number of tokens of one.
    pub(super) how: Generation<'a>,
    /// Positions; `usize::MAX` for the ring of a window.
    pub(super) context: usize,
    pub(super) json: bool,
    /// A message whose answer is incomplete, and the number of its tokens that were shown.
    pub(super) pending: Option<String>,
    pub(super) told: usize,
    pub(super) totals: Totals,
    /// Why nobody reads the output any more.
    pub(super) lost: Option<Failure>,
}

impl Talk<'_> {
    /// Answers messages until there are no more.
    pub(super) fn go_on<E: FlowEngine>(
        &mut self,
        decoder: &mut Decoder<'_, '_, E>,
        mut drafter: Option<&mut dyn Drafter>,
    ) -> Result<(), Error> {
        let mut held = match &self.saved {
            Some(saved) => saved.held(decoder)?,
            None => CachedTokens::default(),
        };
        while self.lost.is_none() {
            if self.pending.is_none() {
                self.pending = self.lines.next()?;
                self.told = 0;
            }
            let Some(message) = self.pending.clone() else {
                break;
            };
            let (context, most) = (self.context, self.how.tokens);
            let prompt = self.history.prompt(&self.prompts, &message, context, most);
            let prompt = match prompt {
                Ok(prompt) => prompt,
                Err(error) if self.lines.is_typed() => {
                    eprintln!("error: {}", Failure::new(error));
                    self.pending = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if prompt.dropped > 0 {
                eprintln!(
                    "the context of {context} tokens is full: the {} oldest messages are left out from now on",
                    prompt.dropped
                );
            }
            let proposes: Option<&mut dyn Drafter> = match &mut drafter {
                Some(drafter) => Some(&mut **drafter),
                None => None,
            };
            let (answer, text) = self.answer(decoder, &mut held, &prompt.tokens, proposes)?;
            if self.lost.is_some() {
                break;
            }
            self.pending = None;
            self.history.add(message, text.clone());
            self.totals.add(&answer, prompt.tokens.len());
            if self.json {
                let report = self.report(&answer, &text, prompt.tokens.len(), prompt.dropped);
                self.lost = output::json_line(&report).err();
            }
            if let Some(saved) = &mut self.saved {
                saved.write(&self.history, decoder, &held)?;
            }
        }
        Ok(())
    }

    /// Produces an answer and its text, which is shown as it comes.
    fn answer<E: FlowEngine>(
        &mut self,
        decoder: &mut Decoder<'_, '_, E>,
        held: &mut CachedTokens,
        prompt: &[u32],
        drafter: Option<&mut dyn Drafter>,
    ) -> Result<(Answer, String), Error> {
        // The last token takes no position.
        let room = self.context.saturating_sub(prompt.len()).saturating_add(1);
        let how = Generation {
            tokens: self.how.tokens.min(room),
            ..self.how.clone()
        };
        let tokenizer = self.prompts.tokenizer();
        let mut stream = tokenizer.stream(Specials::Hidden);
        let (mut text, mut number) = (String::new(), 0);
        let (told, lost) = (&mut self.told, &mut self.lost);
        let streams = !self.json;
        let mut tell = |piece: &str, number: usize| {
            if streams && number > *told {
                *told = number;
                *lost = output::text(piece).err();
            }
            lost.is_none()
        };
        let answering = Answering::begin();
        let answer = held.answer(
            decoder,
            prompt,
            &how,
            drafter,
            &|| answering.is_over(),
            &mut |token| {
                number += 1;
                let piece = match how.ends.contains(&token) {
                    true => String::new(),
                    false => stream.push(token).unwrap_or_default(),
                };
                text.push_str(&piece);
                Ok(tell(&piece, number))
            },
        )?;
        drop(answering);
        let rest = stream.finish();
        text.push_str(&rest);
        tell(&format!("{rest}\n"), usize::MAX);
        Ok((answer, text))
    }

    fn report<'r>(
        &self,
        answer: &'r Answer,
        text: &'r str,
        prompt: usize,
        dropped: usize,
    ) -> Report<'r> {
        let generated = &answer.generated;
        let end = match (generated.ended, answer.stopped) {
            (true, _) => "token",
            (false, true) => "interrupt",
            (false, false) if generated.tokens.len() == self.how.tokens => "length",
            (false, false) => "context",
        };
        let (prompt_seconds, decode_seconds) = (
            generated.prompt.as_secs_f64(),
            generated.decode.as_secs_f64(),
        );
        Report {
            text,
            tokens: &generated.tokens,
            end,
            digest: format!("{:016x}", generated.digest),
            prompt_tokens: prompt,
            cached_tokens: answer.cached,
            dropped_messages: dropped,
            prompt_seconds,
            prompt_tokens_per_second: rate(prompt - answer.cached, prompt_seconds),
            decode_seconds,
            decode_tokens_per_second: rate(
                generated.tokens.len().saturating_sub(1),
                decode_seconds,
            ),
            drafted_tokens: generated.drafted,
            accepted_tokens: generated.accepted,
        }
    }
}

impl Totals {
    fn add(&mut self, answer: &Answer, prompt: usize) {
        self.answers += 1;
        self.taken += prompt - answer.cached;
        self.cached += answer.cached;
        self.prompt += answer.generated.prompt.as_secs_f64();
        // The logits of the first tokens are those of the prompts.
        self.drawn += answer.generated.tokens.len().saturating_sub(1);
        self.decode += answer.generated.decode.as_secs_f64();
        self.drafted += answer.generated.drafted;
        self.accepted += answer.generated.accepted;
    }

    /// Summarizes the answers in a line for people; empty if there were none.
    pub(super) fn line(&self) -> String {
        if self.answers == 0 {
            return String::new();
        }
        let speed = |tokens, seconds| {
            rate(tokens, seconds).map_or_else(String::new, |rate| {
                format!(", {} per second", format::significant(rate))
            })
        };
        format!(
            "{}: {} processed{}, {} already in the cache; {} drawn{}{}\n",
            format::counted(self.answers as u64, "answer"),
            format::counted(self.taken as u64, "token"),
            speed(self.taken, self.prompt),
            self.cached,
            self.drawn + self.answers,
            speed(self.drawn, self.decode),
            drafting::words(self.drafted, self.accepted),
        )
    }
}
