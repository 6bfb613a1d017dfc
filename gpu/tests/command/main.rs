//! The `tercet` command, run as its users run it: a process, files and exit codes.

mod assign;
mod auto;
mod backend;
mod bad_input;
mod bench;
mod bundled;
mod calibrate;
mod chat;
mod checkpoints;
mod compare;
#[cfg(all(feature = "cuda", target_os = "linux"))]
#[path = "../cuda_command/mod.rs"]
mod cuda_command;
mod demo;
mod drafting;
mod edge;
mod elbow;
#[cfg(unix)]
mod firmware;
mod frame;
mod generate;
mod generate_many;
mod import;
mod import_folder;
mod import_refused;
mod info;
mod inspect;
#[cfg(unix)]
mod interrupt;
mod kmeans;
mod metrics;
mod mistakes;
mod network;
mod palette;
mod perplexity;
mod prune;
mod quantize;
mod quantize_i2_s;
mod quantize_model;
mod search;
#[cfg(unix)]
mod signals;
mod support;
mod tokenize;
mod trace;
mod train;
mod train_convert;
mod train_memory;
mod train_savings;
mod transcripts;
mod tune;
mod verify;
mod worked;
