//! Every operation over fixed inputs, as one digest each: what "the same bits everywhere" is tested by.
//!
//! The committed digests are always here. [`run`] and all that computes them need the feature `conformance`: they take a quarter of the time that this
//! crate takes to build. [`run`] makes its inputs from fixed seeds, feeds every operation with awkward sizes (0, 1, 31, 255,
//! 256, 257, odd rows) and awkward values (subnormals, huge magnitudes, ties, signed zeros, mixed scales), and
//! digests what comes out, refusals included. [`TABLE`] holds the committed digests: every target and engine must print
//! it. No case needs more than [`CASE_BYTES`] of memory, so that the smallest boards run the whole suite.
//!
//! ```
//! let agreed = tercet_core::conformance::check().expect("this machine gives other bits");
//! assert!(agreed > 30);
//! ```

mod digest;
#[cfg(feature = "conformance")]
mod suite;

pub use digest::Digest;
#[cfg(feature = "conformance")]
pub use suite::{
    CASE_BYTES, Memory, Part, Quantized, check, check_engine, online, run, run_engine, run_models,
    run_part, run_training,
};

/// The committed digests: a line an operation, `name`, a space, 16 hexadecimal digits; `#` starts a comment.
pub const TABLE: &str = include_str!("../../conformance.txt");

/// An operation whose bits differ from the committed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Mismatch {
    /// The first operation that differs.
    pub name: &'static str,
    /// The digest found here.
    pub found: u64,
    /// The committed digest; `None` when the table lacks the operation.
    pub expected: Option<u64>,
}

impl core::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.expected {
            Some(expected) => {
                write!(
                    f,
                    "{}: digest {:016x}, the table has {expected:016x}",
                    self.name, self.found
                )
            }
            None => write!(f, "{}: not in the table", self.name),
        }
    }
}

impl core::error::Error for Mismatch {}

/// The committed digest of an operation.
pub fn expected(name: &str) -> Option<u64> {
    entries().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// Whether an operation of the table is one that small machines run too, and not of [`Part::LongModels`].
///
/// ```
/// use tercet_core::conformance::is_small;
///
/// assert!(is_small("model/llama/window") && !is_small("model/llama/517"));
/// ```
pub fn is_small(name: &str) -> bool {
    name != "model/llama/batch"
        && !["/threes", "/sinks", "/517", "/639", "/130", "/step"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// The committed table, entry by entry.
pub fn entries() -> impl Iterator<Item = (&'static str, u64)> {
    // Lists of one: what looks for a single character is compiled in the standard library, with a panic that only inlining takes out,
    // and nothing is inlined into code for a processor that the library was not built for (a Cortex-M33's).
    TABLE
        .split(['\n'])
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, digest) = line.split_once([' '])?;
            Some((name, u64::from_str_radix(digest.trim(), 16).ok()?))
        })
}
