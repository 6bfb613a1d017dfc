//! Sampling options of commands that write text.

use serde::{Deserialize, Serialize};
use tercet_core::model::Sampler;

/// Parses a number within a range, which is described in words.
fn within(text: &str, range: impl Fn(f32) -> bool, words: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(number) if range(number) => Ok(number),
        Ok(_) => Err(format!("it must be {words}")),
        Err(_) => Err("it is not a number".to_owned()),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let range = |t: f32| t >= 0.0 && t.is_finite();
    within(text, range, "0 or more")
}

fn share(text: &str) -> Result<f32, String> {
    within(text, |p| (0.0..=1.0).contains(&p), "from 0 to 1")
}

fn penalty(text: &str) -> Result<f32, String> {
    let range = |r: f32| r > 0.0 && r.is_finite();
    within(text, range, "more than 0")
}

/// Options that were not given are `None`, so that those of a session apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sampling {
    /// Divide differences of logits by T before a token is drawn; 0 takes the largest [default: 0]
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = temperature)]
    temp: Option<f32>,
    /// Draw among the K largest logits; 0 for all [default: 0]
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Draw among the fewest tokens whose share reaches P [default: 1]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = share)]
    top_p: Option<f32>,
    /// Draw among tokens that are at least P times as likely as the likeliest [default: 0]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = share)]
    min_p: Option<f32>,
    /// Divide the logits of the last tokens by R, multiply those below 0 by R [default: 1]
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = penalty)]
    repeat_penalty: Option<f32>,
    /// Number of last tokens for --repeat-penalty [default: 64]
    #[arg(long, value_name = "N")]
    repeat_last: Option<usize>,
    /// Seed of the random draws [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl Sampling {
    /// Returns these options, with missing ones from `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            temp: self.temp.or(other.temp),
            top_k: self.top_k.or(other.top_k),
            top_p: self.top_p.or(other.top_p),
            min_p: self.min_p.or(other.min_p),
            repeat_penalty: self.repeat_penalty.or(other.repeat_penalty),
            repeat_last: self.repeat_last.or(other.repeat_last),
            seed: self.seed.or(other.seed),
        }
    }

    /// Returns the sampler of the tokens.
    pub(crate) fn sampler(&self) -> Sampler {
        let greedy = Sampler::GREEDY;
        Sampler {
            temperature: self.temp.unwrap_or(greedy.temperature),
            top_k: self.top_k.unwrap_or(greedy.top_k),
            top_p: self.top_p.unwrap_or(greedy.top_p),
            min_p: self.min_p.unwrap_or(greedy.min_p),
            penalty: self.repeat_penalty.unwrap_or(greedy.penalty),
            seed: self.seed.unwrap_or(greedy.seed),
            stream: 0,
        }
    }

    /// Returns the number of last tokens for the penalty.
    pub(crate) fn recent(&self) -> usize {
        self.repeat_last.unwrap_or(64)
    }
}
