//! Integers of any width.

use crate::dtype::DType;
use crate::tensor_file::Tensor;

/// Returns true for the integer types whose values `f32` may not hold exactly.
pub(super) fn wide(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64 | DType::U32 | DType::U64)
}

/// Returns the values of a tensor of [`wide`] integers.
pub(super) fn read(tensor: Tensor<'_>) -> impl Iterator<Item = i128> {
    let size = tensor.dtype.block().1;
    let signed = matches!(tensor.dtype, DType::I32 | DType::I64);
    tensor.bytes.chunks_exact(size).map(move |bytes| {
        let negative = signed && bytes.last().is_some_and(|&byte| byte >= 128);
        let mut wide = [if negative { 255 } else { 0 }; 16];
        for (to, &from) in wide.iter_mut().zip(bytes) {
            *to = from;
        }
        i128::from_le_bytes(wide)
    })
}
