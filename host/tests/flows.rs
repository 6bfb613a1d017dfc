//! What the library does with files, in one binary: reading, converting, restoring, clustering, searching, reports.
//!
//! `sanitized` is set by .ci/steps/sanitize.sh, which runs none of what it leaves out and would have it compiled.

#[cfg(not(sanitized))]
mod arrays;
#[cfg(not(sanitized))]
mod chat;
#[cfg(not(sanitized))]
mod chat_kept;
#[cfg(not(sanitized))]
mod cluster_data;
mod convert_blocks;
mod convert_chunks;
mod convert_codes;
mod convert_i2_s;
mod convert_i2_s_refused;
mod convert_palette;
mod convert_refused;
#[cfg(not(sanitized))]
mod distill;
mod files;
#[cfg(not(sanitized))]
mod importance;
#[cfg(not(sanitized))]
mod language;
#[cfg(not(sanitized))]
mod language_conformance;
#[cfg(not(sanitized))]
mod language_hostile;
mod look;
#[cfg(not(sanitized))]
mod measure;
#[cfg(not(sanitized))]
mod network;
#[cfg(not(sanitized))]
mod output;
#[cfg(not(sanitized))]
mod owned;
mod points;
mod read;
mod read_gguf;
#[cfg(not(sanitized))]
mod report;
mod restore;
#[cfg(not(sanitized))]
mod search;
#[cfg(not(sanitized))]
mod speculate;
#[cfg(not(sanitized))]
mod tokenizer;
#[cfg(not(sanitized))]
mod training;
#[cfg(not(sanitized))]
mod training_adapters;
#[cfg(not(sanitized))]
mod training_convert;
#[cfg(not(sanitized))]
mod training_convert_refused;
#[cfg(not(sanitized))]
mod training_in_place;
#[cfg(not(sanitized))]
mod training_kept;
#[cfg(not(sanitized))]
mod training_savings;
#[cfg(not(sanitized))]
mod training_selection;
#[cfg(not(sanitized))]
mod with_engine;
