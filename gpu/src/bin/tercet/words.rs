//! Option values that are one of a few words.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_host::convert::Grid;

/// Returns a parser that accepts the listed words, each for its value, and lists them in the help.
pub(crate) fn words<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).try_map(move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or("not one of the words")
    })
}

/// Parses the grids of int8 codes.
pub(crate) fn grid() -> impl TypedValueParser<Value = Grid> {
    words(&[("symmetric", Grid::Symmetric), ("affine", Grid::Affine)])
}
