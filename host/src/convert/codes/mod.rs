//! int8 and ternary codes with scales beside them.
//!
//! Short groups, such as rows, are quantized many at once, in one read of the values. A long group, such as a
//! whole tensor, is first looked at, which takes a read of its own (more for rules that count), and then
//! coded chunk by chunk. Statistics, bins and counts are exact integers, so the split does not show.

mod long;
mod settled;
mod short;

use tercet_core::number::Stats;
use tercet_core::quant::{Groups, Method, QuantError};

pub(super) use settled::Settled;

use super::codec::Done;
use super::hands::{Fused, Hands, Span};
use super::measure::Loss;
use super::stream::{Encoder, Parts, Sink, stream};
use crate::simd::{Backend, Stores};
use crate::source::Source;
use crate::{Error, Progress};

/// Groups of up to this many values (256 KiB as `f32`) are done whole.
const WHOLE: usize = 1 << 16;

/// Quantizes a tensor of plain floats. The parts are codes, scales, and zero points where the method has them.
pub(super) fn quantize(
    hands: &mut impl Hands,
    source: &Source<'_>,
    method: Method,
    groups: Groups,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let job = Job {
        hands,
        source,
        method,
        groups,
        flushed: 0,
        loss: Loss::default(),
    };
    if groups.len <= WHOLE {
        let mut short = short::Short::new(job);
        stream(source, &mut short, progress, sink)?;
        Ok(short.job.done())
    } else {
        let mut long = long::Long::new(job);
        stream(source, &mut long, progress, sink)?;
        Ok(long.job.done())
    }
}

/// A tensor on its way, whatever its groups.
struct Job<'a, 's, H> {
    hands: &'a mut H,
    source: &'a Source<'s>,
    method: Method,
    groups: Groups,
    flushed: u64,
    loss: Loss,
}

impl<H> Job<'_, '_, H> {
    /// Whether there is a third part.
    fn has_zero_points(&self) -> bool {
        self.method == Method::Affine
    }

    fn done(&self) -> Done {
        Done {
            flushed: self.flushed,
            measures: self.loss.finish(),
        }
    }
}

/// What the codes of a group stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    scale: f32,
    zero_point: i8,
}

/// Restores codes that begin at value `at`, in groups of `len` values, `step` saying what those of each stand for.
fn restore(
    len: usize,
    step: impl Fn(usize) -> Step,
    mut at: usize,
    mut codes: &[i8],
    mut out: &mut [f32],
) {
    while !codes.is_empty() {
        let Step { scale, zero_point } = step(at / len);
        let left = (len - at % len).min(codes.len());
        let (run, codes_after) = codes.split_at(left);
        let (restored, out_after) = out.split_at_mut(left);
        Backend::default().dequantize(run, zero_point, scale, restored, Stores::Cached);
        (codes, out) = (codes_after, out_after);
        at += left;
    }
}

/// A quantizer's refusal about the part of a tensor that begins at value `first`.
pub(super) fn refuse(source: &Source<'_>, first: usize, error: QuantError) -> Error {
    let placed = match error {
        QuantError::NotFinite { index } => QuantError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    };
    Error::tensor(source.path, source.tensor.name, placed)
}

/// The statistics of a whole tensor of at least one value, all finite.
pub(crate) fn stats(source: &Source<'_>) -> Result<Stats, Error> {
    let whole = Span {
        source,
        first: 0,
        len: source.values(),
    };
    let stats = Fused.stats(whole, true)?;
    match stats.first_bad {
        Some(index) => Err(refuse(source, 0, QuantError::NotFinite { index })),
        None => Ok(stats),
    }
}
