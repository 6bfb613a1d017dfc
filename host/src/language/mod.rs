//! Models of language as GGUF files: what llama.cpp and Tercet read, written from parameters, a vocabulary and tensors.

mod blocks;
mod import;
mod parameters;
mod tensors;
pub mod tiny;
mod vocabulary;
mod writer;

pub use blocks::{byte_rows, ternary};
pub use import::{ImportOptions, ImportReport, import};
pub use parameters::{Architecture, Parameters};
pub use tensors::{Extras, Role, Slot};
pub use vocabulary::{Merging, TokenKind, Vocabulary};
pub use writer::{Description, Writer, specs};
