//! Products of quantized rows with the compiled kernels of ggml and of BitNet's fork of it.
//!
//! Both multiply one row of weights by one of activations at a time, through functions of one type. Their inputs are
//! made beforehand, and so are not timed: weights in the kernel's format, and activations quantized by the kernel's
//! own function.

use super::ggml;
use libloading::Library;
use rayon::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use tercet_core::block::Format;

/// `void vec_dot(int n, float * s, size_t bs, const void * vx, size_t bx, const void * vy, size_t by, int nrc)`
type Function =
    unsafe extern "C" fn(c_int, *mut f32, usize, *const c_void, usize, *const c_void, usize, c_int);
/// `void quantize_row(const float * x, void * y, int64_t k)`
type Quantize = unsafe extern "C" fn(*const f32, *mut c_void, i64);

/// Values per group of BitNet's I2_S, on x86-64.
const I2_S: usize = 128;
/// Number of rows and of vectors in a tile of ggml's multiplication.
const TILE: usize = 16;
/// Number of vectors that BitNet's kernel multiplies by a row at once.
const TOGETHER: usize = 4;

/// A kernel that multiplies a row by a vector.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: Function,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Multiplies blocks by blocks of activations; `block` values take a fixed number of bytes.
    Ggml {
        format: Format,
        quantize: Quantize,
        block: usize,
        bytes: usize,
    },
    /// Multiplies two-bit codes of 0 to 2 by int8.
    BitNet,
}

/// Vectors in the form that a [`Kernel`] takes.
#[derive(Clone, Debug)]
pub struct Activations {
    bytes: Vec<u8>,
    /// Bytes per vector.
    stride: usize,
    /// Values per vector.
    cols: usize,
    /// Per vector, the excess that [`Kind::BitNet`]'s codes add to every sum.
    sums: Vec<f32>,
}

impl Activations {
    /// Returns the number of vectors.
    pub const fn len(&self) -> usize {
        self.sums.len()
    }

    /// Returns true if there are none.
    pub const fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }
}

impl Kernel {
    /// Returns ggml's kernel for a format, with the instruction set that ggml rates best here; `None` if [`ggml::cpu`]
    /// is not available or has none.
    pub fn ggml(format: Format) -> Option<Self> {
        let (activations, block, bytes) = match format {
            Format::Tq1_0 | Format::Tq2_0 => ("q8_K", 256, 4 + 256 + 32),
            Format::Q4_1 | Format::Q5_1 => ("q8_1", 32, 4 + 32),
            Format::Q2_0 | Format::Q8_0 | Format::Q4_0 | Format::Q5_0 => ("q8_0", 32, 2 + 32),
            // The cases have blocks that Tercet encodes.
            Format::Q4K | Format::Q6K => return None,
        };
        let library = ggml::cpu()?;
        let dot = format!("ggml_vec_dot_{}_{activations}", format.name());
        let quantize = format!("quantize_row_{activations}");
        // SAFETY: the symbols have these types in every ggml that has them.
        let (function, quantize) = unsafe {
            let quantize = library.get::<Quantize>(quantize.as_bytes());
            (
                *library.get::<Function>(dot.as_bytes()).ok()?,
                *quantize.ok()?,
            )
        };
        let kind = Kind::Ggml {
            format,
            quantize,
            block,
            bytes,
        };
        Some(Self { function, kind })
    }

    /// Returns BitNet's kernel for I2_S from the library that `TERCET_BITNET` names; `None` if the variable is not
    /// set.
    ///
    /// # Panics
    /// If the variable names a file that does not load or has no such kernel.
    pub fn bitnet() -> Option<Self> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        let load = || {
            let path = std::env::var_os("TERCET_BITNET").filter(|path| !path.is_empty())?;
            // SAFETY: the user vouches for the file by naming it.
            let library = unsafe { Library::new(&path) };
            Some(library.unwrap_or_else(|error| panic!("TERCET_BITNET: {error}")))
        };
        let library = LIBRARY.get_or_init(load).as_ref()?;
        // SAFETY: the symbol has this type in every BitNet.
        let function = unsafe { library.get::<Function>(b"ggml_vec_dot_i2_i8_s") };
        let function = function.unwrap_or_else(|error| panic!("TERCET_BITNET: {error}"));
        Some(Self {
            function: *function,
            kind: Kind::BitNet,
        })
    }

    /// Packs ternary codes in the form of BitNet's kernel: 32 bytes hold 128 values, the first 32 in the highest bits.
    pub fn pack(codes: &[i8]) -> Vec<u8> {
        let groups = codes.chunks_exact(I2_S);
        groups
            .flat_map(|group| {
                (0..I2_S / 4).map(|m| {
                    let code = |part: usize| (group[m + part * (I2_S / 4)] + 1) as u8;
                    code(0) << 6 | code(1) << 4 | code(2) << 2 | code(3)
                })
            })
            .collect()
    }

    /// Returns vectors of `cols` codes that a kernel multiplies by.
    ///
    /// # Panics
    /// If `cols` is not a whole number of the kernel's blocks, or `x` not a whole number of vectors.
    pub fn activations(&self, x: &[i8], cols: usize) -> Activations {
        let vectors = x.chunks_exact(cols);
        assert!(vectors.remainder().is_empty());
        let sums = vectors.map(|x| x.iter().map(|&x| f32::from(x)).sum());
        let sums = sums.collect();
        let (bytes, stride) = match self.kind {
            Kind::BitNet => {
                assert!(cols.is_multiple_of(I2_S));
                (x.iter().map(|&x| x as u8).collect(), cols)
            }
            Kind::Ggml {
                quantize,
                block,
                bytes,
                ..
            } => {
                assert!(cols.is_multiple_of(block));
                let values: Vec<f32> = x.iter().map(|&x| f32::from(x)).collect();
                // A row begins with an f32; the allocator aligns to more.
                let mut out = vec![0; x.len() / block * bytes];
                // SAFETY: the input holds as many values as it is told, the output their blocks.
                unsafe { quantize(values.as_ptr(), out.as_mut_ptr().cast(), x.len() as i64) };
                (out, cols / block * bytes)
            }
        };
        Activations {
            bytes,
            stride,
            cols,
            sums,
        }
    }

    /// Returns the bytes of a row of weights.
    fn row(&self, cols: usize) -> usize {
        match self.kind {
            Kind::Ggml { format, .. } => format.encoded_len(cols).expect("whole blocks"),
            Kind::BitNet => cols / 4,
        }
    }

    /// Multiplies every row of `weights` by every vector: `out[row * x.len() + vector]`. Runs on the threads of the
    /// current rayon pool.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn multiply(&self, weights: &[u8], x: &Activations, out: &mut [f32]) {
        let row = self.row(x.cols);
        assert_eq!(weights.len() % row, 0);
        assert_eq!(out.len(), weights.len() / row * x.len());
        // With one vector: more rows, so that a task is worth starting.
        let rows = if x.len() == 1 { 4 * TILE } else { TILE };
        let tiles = out.par_chunks_mut(rows * x.len());
        tiles
            .zip(weights.par_chunks(rows * row))
            .for_each(|(out, weights)| match self.kind {
                Kind::Ggml { .. } => self.tile(weights, row, x, out),
                Kind::BitNet => self.bitnet_rows(weights, row, x, out),
            });
    }

    fn tile(&self, weights: &[u8], row: usize, x: &Activations, out: &mut [f32]) {
        let n = x.cols as c_int;
        for first in (0..x.len()).step_by(TILE) {
            for vector in first..x.len().min(first + TILE) {
                let activations = &x.bytes[vector * x.stride..][..x.stride];
                for (weights, out) in weights.chunks_exact(row).zip(out.chunks_mut(x.len())) {
                    let sum: *mut f32 = &mut out[vector];
                    let (weights, activations) = (weights.as_ptr(), activations.as_ptr());
                    // SAFETY: both hold the blocks of n values, and one sum is written.
                    unsafe {
                        (self.function)(n, sum, 0, weights.cast(), 0, activations.cast(), 0, 1)
                    };
                }
            }
        }
    }

    fn bitnet_rows(&self, weights: &[u8], row: usize, x: &Activations, out: &mut [f32]) {
        let n = x.cols as c_int;
        // As many vectors at once as the kernel takes, else one.
        let nrc = if x.len().is_multiple_of(TOGETHER) {
            x.len()
        } else {
            1
        };
        for (weights, out) in weights.chunks_exact(row).zip(out.chunks_mut(x.len())) {
            for vector in (0..x.len()).step_by(nrc) {
                let activations = x.bytes[vector * x.stride..].as_ptr().cast();
                let sums = out[vector..].as_mut_ptr();
                // SAFETY: the row holds n codes, `nrc` vectors of n bytes lie a stride apart, and as many sums are
                // written, one after another.
                unsafe {
                    (self.function)(
                        n,
                        sums,
                        1,
                        weights.as_ptr().cast(),
                        n as usize,
                        activations,
                        x.stride,
                        nrc as c_int,
                    )
                };
            }
            for (sum, &too_much) in out.iter_mut().zip(&x.sums) {
                *sum -= too_much;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitnet_s_bytes_are_what_the_core_decodes() {
        use tercet_core::block::i2_s::{Interleave, codes};
        let wanted: Vec<i8> = (0..256).map(|i| (i * 7 % 3) as i8 - 1).collect();
        let mut bytes = Kernel::pack(&wanted);
        bytes.extend(1.0f32.to_le_bytes());
        bytes.extend([0; 28]);
        let mut found = vec![0; wanted.len()];
        assert_eq!(codes(Interleave::X86x128, &bytes, &mut found), Ok(1.0));
        assert_eq!(found, wanted);
    }
}
