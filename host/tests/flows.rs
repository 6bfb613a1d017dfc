//! What the library does with files, in one binary: reading, converting, restoring, clustering, searching, reports.

mod cluster_data;
mod convert_blocks;
mod convert_chunks;
mod convert_codes;
mod convert_palette;
mod convert_refused;
mod files;
mod look;
mod measure;
mod network;
mod output;
mod points;
mod read;
mod read_gguf;
mod report;
mod restore;
mod search;
mod with_engine;
