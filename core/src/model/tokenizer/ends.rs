//! Tokens that end a text whatever the file says of them.

/// Texts of tokens that end generation in llama.cpp (`special_eog_ids` in its `src/llama-vocab.cpp`). It makes
/// control tokens of them too, since converters have often forgotten to.
const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|ifm|im_end|>",
    // What fills up, and what begins the next file, where code is completed.
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
    "<|plamo:file_separator|>",
];

/// Whether a token of that text ends generation.
pub(super) fn is_end(text: &[u8]) -> bool {
    matches!(text, [b'<' | b'[' | b'_', ..])
        && text.len() <= 32
        && ENDS.iter().any(|end| end.as_bytes() == text)
}
