//! Tokenizers of GGUF files: hand cases, laws over arbitrary bytes, and what is refused.

mod bpe;
mod decode;
mod refusals;
mod spm;
mod support;
