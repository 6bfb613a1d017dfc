//! One digest for every operation over fixed inputs: the test of "the same bits everywhere".
//!
//! The committed digests are always available. [`run`] and everything that computes digests need the feature
//! `conformance`, because they take a quarter of this crate's build time. [`run`] creates its inputs from fixed
//! seeds. It runs every operation with awkward sizes (0, 1, 31, 255, 256, 257, odd rows) and awkward values
//! (subnormals, huge magnitudes, ties, signed zeros, mixed scales), and digests the results, including errors.
//! [`TABLE`] contains the committed digests: every target and engine must print it. Except for the cases of language
//! models and training, no case needs more than [`CASE_BYTES`] of memory, so that small boards can run the suite.
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
    CASE_BYTES, Memory, Quantized, Section, check, check_engine, online, run, run_engine,
    run_models, run_part, run_training,
};

/// The committed digests, one line per operation: `name`, a space, 16 hexadecimal digits; `#` starts a comment.
pub const TABLE: &str = include_str!("../../conformance.txt");

/// An operation whose bits differ from the committed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Mismatch {
    /// First operation that differs.
    pub name: &'static str,
    /// Digest computed here.
    pub found: u64,
    /// Committed digest; `None` if the table does not have the operation.
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

/// Returns the committed digest of an operation.
pub fn expected(name: &str) -> Option<u64> {
    entries().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// Returns true if small machines run an operation of the table too, and false for those of [`Section::LongModels`].
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

/// Returns the committed table, entry by entry.
pub fn entries() -> impl Iterator<Item = (&'static str, u64)> {
    // Lists of one element: the search for a single character is compiled in the standard library, with a panic that
    // only inlining removes. Nothing is inlined into code for a processor for which the library was not built (a
    // Cortex-M33).
    TABLE
        .split(['\n'])
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, digest) = line.split_once([' '])?;
            Some((name, u64::from_str_radix(digest.trim(), 16).ok()?))
        })
}
