//! Byte-level pieces: a sequence of bytes, in which the pair whose merge has the lowest rank merges first.
//!
//! Source: `llm_tokenizer_bpe_session` in llama.cpp's `src/llama-vocab.cpp`.

use super::lookup::{find, insert, pair_hash};
use super::metadata::string;
use super::symbols::{NEVER, Rules};
use super::{Tokenizer, TokenizerError};

/// Merges by rank, and a table that finds them by their parts. Symbols are tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranks<'a> {
    /// Left token, right token and merged token for each rank.
    pub(super) merges: &'a [u32],
    pub(super) slots: &'a [u32],
}

/// Returns the tokens of a merge.
#[inline]
fn merge(merges: &[u32], rank: u32) -> Option<[u32; 3]> {
    let from = merges.get((rank as usize).checked_mul(3)?..)?;
    from.first_chunk().copied()
}

impl Rules for Ranks<'_> {
    #[inline]
    fn key(&self, left: u32, right: u32, _: u32) -> u32 {
        let same =
            |rank| matches!(merge(self.merges, rank), Some([l, r, _]) if l == left && r == right);
        find(self.slots, pair_hash(left, right), same).unwrap_or(NEVER)
    }

    #[inline]
    fn merged(&self, left: u32, key: u32) -> u32 {
        merge(self.merges, key).map_or(left, |[_, _, merged]| merged)
    }
}

/// Fills both tables from the file's `texts`: `left right`, split at the first space after the first byte. Of merges
/// with the same parts, the first counts.
pub(super) fn fill(
    tokenizer: &Tokenizer<'_>,
    texts: &[u8],
    merges: &mut [u32],
    slots: &mut [u32],
) -> Result<(), TokenizerError> {
    let mut offset = 0;
    let ranks = merges.len() / 3;
    for rank in 0..ranks as u32 {
        let (text, next) = string(texts, offset).ok_or(TokenizerError::File)?;
        offset = next;
        let parts = parts(tokenizer, text).ok_or(TokenizerError::Merge { rank })?;
        let from = merges.get_mut((rank as usize).saturating_mul(3)..);
        if let Some(slot) = from.and_then(|from| from.first_chunk_mut()) {
            *slot = parts;
        }
        let [left, right, _] = parts;
        let same = |rank| matches!(merge(merges, rank), Some([l, r, _]) if l == left && r == right);
        insert(
            slots,
            pair_hash(left, right),
            rank,
            "tokenizer.ggml.merges",
            same,
        )?;
    }
    Ok(())
}

/// Returns the two tokens of a merge, and the token whose text is the two texts joined.
fn parts(tokenizer: &Tokenizer<'_>, text: &[u8]) -> Option<[u32; 3]> {
    let (_, rest) = text.split_first()?;
    let space = rest.iter().position(|&byte| byte == b' ')?;
    let (left, right) = text.split_at_checked(space.checked_add(1)?)?;
    let (_, right) = right.split_first()?;
    Some([
        tokenizer.token(left)?,
        tokenizer.token(right)?,
        tokenizer.find(left.iter().chain(right).copied())?,
    ])
}
