//! Pre-tokenizers by the names that files give them in `tokenizer.ggml.pre`.

use super::scan::Scanner;

/// How a byte-level vocabulary cuts text, and what goes with its name in llama.cpp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pre {
    pub(super) scanner: Scanner,
    /// A piece that is a token is one token, whatever the merges give.
    pub(super) ignore_merges: bool,
    /// Whether a text begins with BOS if the file says nothing.
    pub(super) adds_bos: bool,
    /// Whether BOS is token 11 if the file names none.
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

    /// What cuts the texts of a vocabulary without merges: nothing.
    pub(super) const BYTES: Self = Self::of(Scanner::Gpt2);

    /// The pre-tokenizer of a name; `None` for those that are cut by other rules. Source: llama.cpp's `src/llama-vocab.cpp`.
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
