//! What the library does with files, in one binary: reading, converting, restoring, clustering, searching, reports.
//!
//! With default features it is what .ci/steps/sanitize.sh runs: the rest needs `full`, or would be compiled for nothing.

#[cfg(feature = "full")]
mod arrays;
#[cfg(feature = "full")]
mod chat;
#[cfg(feature = "full")]
mod chat_kept;
#[cfg(feature = "full")]
mod cluster_data;
mod convert_blocks;
mod convert_chunks;
mod convert_codes;
mod convert_i2_s;
mod convert_i2_s_refused;
mod convert_palette;
mod convert_refused;
#[cfg(feature = "full")]
mod distill;
mod files;
#[cfg(feature = "full")]
mod importance;
#[cfg(feature = "full")]
mod language;
#[cfg(feature = "full")]
mod language_conformance;
#[cfg(feature = "full")]
mod language_hostile;
mod look;
#[cfg(feature = "full")]
mod measure;
#[cfg(feature = "full")]
mod network;
#[cfg(feature = "full")]
mod output;
#[cfg(feature = "full")]
mod owned;
mod points;
mod read;
mod read_gguf;
#[cfg(feature = "full")]
mod report;
mod restore;
#[cfg(feature = "full")]
mod search;
#[cfg(feature = "full")]
mod speculate;
#[cfg(feature = "full")]
mod tokenizer;
#[cfg(feature = "full")]
mod training;
#[cfg(feature = "full")]
mod training_adapters;
#[cfg(feature = "full")]
mod training_convert;
#[cfg(feature = "full")]
mod training_convert_refused;
#[cfg(feature = "full")]
mod training_in_place;
#[cfg(feature = "full")]
mod training_kept;
#[cfg(feature = "full")]
mod training_savings;
#[cfg(feature = "full")]
mod training_selection;
#[cfg(feature = "full")]
mod with_engine;
