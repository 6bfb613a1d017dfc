//! Language models: what a GGUF file says of one, and what runs it.

pub mod tokenizer;
