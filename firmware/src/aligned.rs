//! Files in flash.

/// A file on a boundary of 32 bytes, to which GGUF aligns tensors within it: so kernels find every word aligned.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Aligned<T: ?Sized>(
    /// The file.
    pub T,
);
