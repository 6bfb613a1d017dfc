//! Pre-tokenizers, by their names in `tokenizer.ggml.pre`.

use super::scan::Scanner;

/// The scanner of a byte-level vocabulary, and other properties that llama.cpp associates with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pre {
    pub(super) scanner: Scanner,
    /// True if a piece that is a token becomes one token, independent of the merges.
    pub(super) ignore_merges: bool,
    /// True if a text begins with BOS when the file does not specify it.
    pub(super) adds_bos: bool,
    /// True if BOS is token 11 when the file does not specify it.
    pub(super) has_bos: bool,
}

impl Pre {
    const fn of(scanner: Scanner) -> Self {
        Self {
            scanner,
            ignore_merges: false,
            adds_bos: false,
            has_bos: true,
        }
    }

    /// The pre-tokenizer of a vocabulary without merges, which needs none.
    pub(super) const BYTES: Self = Self::of(Scanner::Gpt2);

    /// Returns the pre-tokenizer with this name; `None` for those with other rules. Source: llama.cpp's
    /// `src/llama-vocab.cpp`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "gigachat" | "jina-v2-es"
            | "jina-v2-de" | "jina-v1-en" | "jina-v2-code" | "roberta-bpe" | "a.x-4.0"
            | "mellum" | "modern-bert" | "olmo" | "mpt" | "jais" | "trillion" | "exaone4"
            | "granite-docling" => Self::of(Scanner::Gpt2),
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone"
            | "minerva-7b" | "mellum2" => Self::of(Scanner::SmolLm),
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral"
            | "midm-2.0" | "lfm2" | "jina-v5-nano" => Self {
                ignore_merges: true,
                adds_bos: true,
                ..Self::of(Scanner::Llama3)
            },
            "dbrx" | "smaug-bpe" => Self::of(Scanner::Llama3),
            "chatglm-bpe" => Self {
                has_bos: false,
                ..Self::of(Scanner::Llama3)
            },
            "glm4" | "glm5" => Self {
                ignore_merges: true,
                has_bos: false,
                ..Self::of(Scanner::Llama3)
            },
            "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "megrez" | "stablelm2"
            | "hunyuan" | "solar-open" | "grok-2" => Self::of(Scanner::Qwen2),
            _ => return None,
        })
    }
}
