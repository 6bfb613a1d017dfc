//! Points from files, and back.

mod csv;
mod integers;
mod spec;
mod tensor;
mod weights;
mod write;

use tracing::trace_span;

pub use weights::read_weights;
pub use write::{
    Destination, side_files, write_centroids, write_labels, write_points, write_representatives,
};

use super::codes::unit;
use super::{Points, Values};
use crate::Error;

/// Options for reading that a file does not contain itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The byte between the fields of a CSV file. `None` uses a tab, a semicolon or a comma: the first of these that
    /// the file's first line holds.
    pub delimiter: Option<u8>,
}

impl Points {
    /// Reads the points that `spec` names: `data.npy`, `data.csv`, `model.safetensors:tensor`, `model.gguf:tensor`.
    ///
    /// The tensor may be omitted if the file holds one tensor, or one tensor of two dimensions. The first dimension
    /// counts the points and the others are a point's values, so that images (n × height × width) are taken as n ×
    /// height·width; a tensor of one dimension is n points of one value. Files named `.csv`, `.tsv` and `.txt` are read
    /// as text unless their first bytes are another format's; the format of all others is detected from their content.
    ///
    /// int8, uint8 and bool stay as they are, and so do int8 codes with one scale for the tensor. f32, f16, bf16,
    /// 16-bit integers and quantized tensors become the `f32` they stand for, f64 and decimal text the nearest `f32`,
    /// and integers of 32 and 64 bits are accepted if `f32` holds them exactly. Memory: the values once; the file is
    /// mapped.
    ///
    /// A CSV file has one point per line. Its first line is a header if none of its fields is a number. Fields may be
    /// quoted; blanks around them are dropped.
    ///
    /// # Errors
    /// Those of [`TensorFile::open`](crate::TensorFile::open); [`Error::NoSuchTensor`]; [`Error::Unsupported`] if the
    /// spec names no tensor and several qualify; [`Error::Tensor`] for a tensor without values, of a type that is not
    /// read, or with a value that is not finite, which is named by row and column, counted from 0; [`Error::BadFile`]
    /// for a CSV file that is empty or has a field that is missing, empty or no finite number, which is named by line
    /// and column, counted from 1.
    pub fn open(spec: &str, options: &ReadOptions) -> Result<Self, Error> {
        let _span = trace_span!("read", file = spec).entered();
        let spec = spec::Spec::parse(spec);
        if spec.is_text() {
            if let Some(tensor) = spec.tensor {
                let reason = format!("a text file has no tensors, and so none named `{tensor}`");
                return Err(Error::unsupported(spec.path, reason));
            }
            csv::read(spec.path, options)
        } else {
            tensor::read(spec.path, spec.tensor)
        }
    }
}
