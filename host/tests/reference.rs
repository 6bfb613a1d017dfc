//! Outside references, in one binary: ggml, gguf, onnxruntime, transformers, NumPy and others, where they are
//! installed; see `support`.

mod files;
mod reference_activations;
mod reference_bitnet;
mod reference_blocks;
mod reference_checkpoints;
mod reference_cluster;
mod reference_cluster_scores;
mod reference_files;
mod reference_fp8;
mod reference_gguf;
mod reference_int8;
mod reference_language;
mod reference_linear;
mod reference_models;
mod reference_network;
mod reference_palette;
mod reference_scripts;
mod reference_search;
mod reference_tokenizer;
mod reference_training;
mod support;
