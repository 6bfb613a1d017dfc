//! The table of the block formats' kernels.
//!
//! Kernels work on ordinary blocks: finite values, a scale that f16 holds, no doubt about a rounding. What is left (errors,
//! blocks that flush, sums next to a tie) goes block by block to [`tercet_core::block`], so there is one place that says
//! what it means.

pub(in crate::simd) mod dot;
mod optimal;
mod ternary;

use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::quant::{Rule, ScaleRule};

pub(in crate::simd) use ternary::Cut;

use super::past::{CopyPast, past};
use super::taken::take;
use super::{Backend, Isa, Stores};

/// What one instruction set does to blocks.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`] leads to.
#[derive(Debug)]
pub(crate) struct Blocks {
    values: Values,
    tq1_0: Pack<256, 54>,
    tq2_0: Pack<256, 66>,
    q2_0: Pack<64, 18>,
    q8_0: Encode,
    q4_0: Encode,
    decode: fn(Format) -> Decode,
    dot: fn(Format) -> Dot,
    stream: Option<CopyPast>,
}

/// What is asked of the values of one ternary block: 64 or 256 of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Values {
    /// The largest pattern of a magnitude; NaN and infinities are patterns as well.
    pub(in crate::simd) largest: unsafe fn(&[f32]) -> u32,
    /// Σ|x| in f64, in any order.
    pub(in crate::simd) sum: unsafe fn(&[f32]) -> f64,
    /// Σ|x| of the values that a cut codes in f64, in any order, and how many they are.
    pub(in crate::simd) coded: unsafe fn(&[f32], Cut) -> (f64, u32),
    /// Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds; no addend goes through more than 64 additions.
    pub(in crate::simd) tails: Tails,
    /// Appends the |x| in low..high to a buffer, which has room for as many as there are and 16 more.
    pub(in crate::simd) between: unsafe fn(&[f32], [f32; 2], &mut [f32]) -> usize,
}

/// Writes a block's codes and its scale; false where the scale overflows f16.
type Pack<const LEN: usize, const BYTES: usize> =
    unsafe fn(&[f32; LEN], Cut, f32, &mut [u8; BYTES]) -> bool;
/// Sums and counts above two bounds.
type Tails = unsafe fn(&[f32], [f32; 2]) -> [(f32, u32); 2];
/// Encodes whole blocks from the first on, and says how many: all of them, or fewer where the next ones are not ordinary.
type Encode = unsafe fn(&[f32], &mut [u8]) -> usize;
/// Decodes whole blocks up to the first whose scale is not finite, and says how many.
type Decode = unsafe fn(&[u8], &mut [f32]) -> usize;
/// As [`block::dot_fixed`]; `None` where a scale is not finite.
type Dot = unsafe fn(&[u8], &[i8]) -> Option<i128>;

/// Blocks that core takes where an encoder stopped: what encoders look at together.
const STEP: usize = 16;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::avx2::blocks as avx2;
    use super::super::avx512::blocks as avx512;
    use super::super::avx512_vnni::blocks as avx512_vnni;
    use super::{Blocks, Values};

    pub(super) static AVX2: Blocks = Blocks {
        values: Values {
            largest: avx2::values::largest,
            sum: avx2::values::sum,
            coded: avx2::values::coded,
            tails: avx2::values::tails,
            between: avx2::values::between,
        },
        tq1_0: avx2::pack::tq1_0,
        tq2_0: avx2::pack::tq2_0,
        q2_0: avx2::pack::q2_0,
        q8_0: avx2::encode::q8_0,
        q4_0: avx2::encode::q4_0,
        decode: avx2::decode::of,
        dot: avx2::dot::of,
        stream: Some(avx2::decode::stream),
    };

    pub(super) static AVX512: Blocks = Blocks {
        values: Values {
            largest: avx512::values::largest,
            sum: avx512::values::sum,
            coded: avx512::values::coded,
            tails: avx512::values::tails,
            between: avx512::values::between,
        },
        tq1_0: avx512::pack::tq1_0,
        tq2_0: avx512::pack::tq2_0,
        q2_0: avx512::pack::q2_0,
        q8_0: avx512::encode::q8_0,
        q4_0: avx512::encode::q4_0,
        decode: avx512::decode::of,
        ..AVX2
    };

    pub(super) static AVX512_VNNI: Blocks = Blocks {
        dot: avx512_vnni::dot::of,
        ..AVX512
    };
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64 {
    use super::super::neon::blocks as neon;
    use super::{Blocks, Values};

    pub(super) static NEON: Blocks = Blocks {
        values: Values {
            largest: neon::values::largest,
            sum: neon::values::sum,
            coded: neon::values::coded,
            tails: neon::values::tails,
            between: neon::values::between,
        },
        tq1_0: neon::pack::tq1_0,
        tq2_0: neon::pack::tq2_0,
        q2_0: neon::pack::q2_0,
        q8_0: neon::encode::q8_0,
        q4_0: neon::encode::q4_0,
        decode: neon::decode::of,
        dot: neon::dot::of,
        stream: None,
    };
}

impl Backend {
    /// As [`block::encode`].
    pub(crate) fn encode_blocks(
        self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        let own = rule == Rule::AbsMax && scale == ScaleRule::Rule;
        match self.blocks() {
            Some(blocks)
                if format.encoded_len(values.len()) == Ok(out.len())
                    && (own || format.is_ternary()) =>
            {
                blocks.encode(format, rule, scale, values, out)
            }
            // What is wrong with lengths or rules is for core to say.
            _ => block::encode(format, rule, scale, values, out),
        }
    }

    /// As [`block::decode`]. Before another thread may read the floats, [`Stores::finish`] is called.
    pub(crate) fn decode_blocks(
        self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
        stores: Stores,
    ) -> Result<(), BlockError> {
        match self.blocks() {
            Some(blocks) if format.encoded_len(out.len()) == Ok(bytes.len()) => {
                match blocks.stream.filter(|_| stores == Stores::Streaming) {
                    Some(copy) => blocks.decode_past(format, bytes, out, copy),
                    None => blocks.decode(format, bytes, out),
                }
            }
            _ => block::decode(format, bytes, out),
        }
    }

    /// As [`block::dot_fixed`].
    pub(crate) fn dot_blocks(
        self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
    ) -> Result<i128, BlockError> {
        let sum = match self.blocks() {
            Some(blocks) if format.encoded_len(x.len()) == Ok(bytes.len()) => {
                blocks.dot(format, bytes, x)
            }
            _ => None,
        };
        match sum {
            Some(sum) => Ok(sum),
            None => block::dot_fixed(format, bytes, x),
        }
    }

    /// The loop that copies floats past the caches, where the backend has one.
    pub(super) fn copy_past(self) -> Option<CopyPast> {
        self.blocks().and_then(|blocks| blocks.stream)
    }

    /// The kernels of blocks; none where core's own loops are the backend.
    fn blocks(self) -> Option<&'static Blocks> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => Some(&x86::AVX2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Some(&x86::AVX512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => Some(&x86::AVX512_VNNI),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon | Isa::DotProd => Some(&aarch64::NEON),
            _ => None,
        }
    }
}

/// The methods take lengths that fit each other.
impl Blocks {
    fn encode(
        &self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        let choice = (rule, scale);
        match format {
            Format::Tq1_0 => ternary::encode(format, &self.values, self.tq1_0, choice, values, out),
            Format::Tq2_0 => ternary::encode(format, &self.values, self.tq2_0, choice, values, out),
            Format::Q2_0 => ternary::encode(format, &self.values, self.q2_0, choice, values, out),
            Format::Q8_0 => runs(format, self.q8_0, values, out),
            Format::Q4_0 => runs(format, self.q4_0, values, out),
        }
    }

    fn decode(&self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        let done = unsafe { (self.decode)(format)(bytes, out) };
        let rest = &bytes[done * format.bytes()..];
        block::decode(format, rest, &mut out[done * format.len()..])
            .map_err(|error| moved(error, done, format))
    }

    /// Decodes past the caches. A part is whole blocks of every format.
    fn decode_past(
        &self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
        copy: CopyPast,
    ) -> Result<(), BlockError> {
        past(copy, out, |first, out| {
            let block = first / format.len();
            let bytes =
                &bytes[block * format.bytes()..][..out.len() / format.len() * format.bytes()];
            self.decode(format, bytes, out)
                .map_err(|error| moved(error, block, format))
        })
    }

    fn dot(&self, format: Format, bytes: &[u8], x: &[i8]) -> Option<i128> {
        // SAFETY: as above.
        unsafe { (self.dot)(format)(bytes, x) }
    }
}

/// Encodes by a kernel, and by core the blocks at which it stops.
fn runs(
    format: Format,
    kernel: Encode,
    values: &[f32],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    let blocks = values.len() / format.len();
    let mut whole = Encoded::default();
    while whole.blocks < blocks {
        let (values, out) = (
            &values[whole.blocks * format.len()..],
            &mut out[whole.blocks * format.bytes()..],
        );
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        let done = unsafe { kernel(values, out) };
        let step = STEP.min(blocks - whole.blocks - done);
        whole.blocks += done;
        by_core(
            format,
            (Rule::AbsMax, ScaleRule::Rule),
            &values[done * format.len()..][..step * format.len()],
            &mut out[done * format.bytes()..][..step * format.bytes()],
            &mut whole,
        )?;
    }
    Ok(whole)
}

/// Encodes the blocks that follow on those in `whole`, and counts them there.
fn by_core(
    format: Format,
    (rule, scale): (Rule, ScaleRule),
    values: &[f32],
    out: &mut [u8],
    whole: &mut Encoded,
) -> Result<(), BlockError> {
    let done = block::encode(format, rule, scale, values, out)
        .map_err(|error| moved(error, whole.blocks, format))?;
    whole.blocks += done.blocks;
    whole.flushed += done.flushed;
    Ok(())
}

/// The error of blocks that start at block `start`, seen from the whole.
pub(crate) fn moved(error: BlockError, start: usize, format: Format) -> BlockError {
    match error {
        BlockError::NotFinite { index } => BlockError::NotFinite {
            index: index + start * format.len(),
        },
        BlockError::ScaleOverflow { block } => BlockError::ScaleOverflow {
            block: block + start,
        },
        BlockError::ScaleNotFinite { block } => BlockError::ScaleNotFinite {
            block: block + start,
        },
        other => other,
    }
}
