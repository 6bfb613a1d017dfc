//! Files in flash.

/// A file that the program contains, aligned to 32 bytes.
///
/// [`include_bytes!`] aligns a file to a single byte. A GGUF file aligns its tensors to 32 bytes within itself, so
/// here every word of them is aligned. Kernels for Cortex-M load the words of packed layouts only at addresses that are
/// multiples of 4, and use plain loops otherwise: a network of handwritten digits then takes 63,700 instructions on a
/// Cortex-M4, instead of 20,600. The results are the same.
///
/// ```
/// use tercet_core::gguf::Aligned;
///
/// static FILE: &Aligned<[u8]> =
///     &Aligned(*include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/models/ternary.gguf")));
///
/// assert!(FILE.0.starts_with(b"GGUF"));
/// assert!(FILE.0.as_ptr().addr().is_multiple_of(32));
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Aligned<T: ?Sized>(
    /// The file.
    pub T,
);
