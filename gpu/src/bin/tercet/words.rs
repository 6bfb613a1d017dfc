//! Option values that are one of a few words.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_core::quant::calibrate::RangeRule;
use tercet_host::convert::Scheme;

use crate::failure::Failure;

/// Returns a parser that accepts the listed words, each for its value, and lists them in the help.
pub(crate) fn words<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).try_map(move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or("not one of the words")
    })
}

/// Returns the rule of a range that keeps so many per cent of the values, to a ten-thousandth.
pub(crate) fn percentile(percent: f64) -> Result<RangeRule, Failure> {
    match percent > 0.0 && percent <= 100.0 {
        true => Ok(RangeRule::Percentile {
            ppm: (percent * 10_000.0).round().max(1.0) as u32,
        }),
        false => Err(Failure::usage("--percent must be above 0 and at most 100")),
    }
}

/// Parses the grids of int8 codes.
pub(crate) fn grid() -> impl TypedValueParser<Value = Scheme> {
    words(&[("symmetric", Scheme::Symmetric), ("affine", Scheme::Affine)])
}
