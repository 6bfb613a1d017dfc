//! Tokens that end a text, independent of their type in the file.

/// Texts of tokens that end generation in llama.cpp (`special_eog_ids` in its `src/llama-vocab.cpp`). It also makes
/// them control tokens, since converters have often not done so.
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
    // Tokens of code completion that pad, or that begin the next file.
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

/// Returns true if a token with that text ends generation.
pub(super) fn is_end(text: &[u8]) -> bool {
    matches!(text, [b'<' | b'[' | b'_', ..])
        && text.len() <= 32
        && ENDS.iter().any(|end| end.as_bytes() == text)
}
