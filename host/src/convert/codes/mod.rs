//! int8 and ternary codes with scales beside them.
//!
//! Short groups, such as rows, are quantized many at once, in one read of the values. A long group, such as a whole
//! tensor, is first surveyed in a separate read (more for rules that count), and then encoded chunk by chunk.
//! Statistics, bins and counts are exact integers, so the result does not depend on the split.

mod long;
mod short;

use tercet_core::quant::{Groups, Method};

use super::measure::Loss;
use super::span::Done;
use super::steps::ConversionSteps;
use super::stream::{Sink, stream};
use crate::source::Source;
use crate::{Error, Progress};

/// Groups of up to this many values (256 KiB as `f32`) are quantized as a whole.
const WHOLE: usize = 1 << 16;

/// Quantizes a tensor of plain floats. The parts are codes, scales, and zero points if the method has them.
pub(super) fn quantize(
    steps: &mut dyn ConversionSteps,
    source: &Source<'_>,
    method: Method,
    groups: Groups,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let job = TensorConversion {
        steps,
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

/// A tensor in conversion, with any groups.
struct TensorConversion<'a, 's> {
    steps: &'a mut dyn ConversionSteps,
    source: &'a Source<'s>,
    method: Method,
    groups: Groups,
    flushed: u64,
    loss: Loss,
}

impl TensorConversion<'_, '_> {
    /// True if there is a third part.
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
