//! Points: rows of numbers from a file, as clustering and search take them.
//!
//! [`Points::open`] reads npy, safetensors, GGUF and CSV files. What is an integer of eight bits stays one, exactly;
//! everything else becomes `f32`. [`Points::to_codes`] puts the values on an int8 grid, and says which.
//!
//! ```
//! use tercet_core::quant::calibrate::{Method, Scheme};
//! use tercet_host::points::{Points, ReadOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("heights.csv");
//! std::fs::write(&path, "width,height\n1.5,-2\n0.5,1\n")?;
//! let points = Points::open(path.to_str().unwrap(), &ReadOptions::default())?;
//! assert_eq!((points.rows(), points.dims()), (2, 2));
//!
//! let codes = points.to_codes(Method::AbsMax, Scheme::Symmetric)?;
//! assert_eq!(codes.codes, [95, -127, 32, 64]);
//! assert_eq!(codes.grid.value(-127), -2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codes;
mod csv;
mod integers;
mod spec;
mod tensor;
mod weights;
mod write;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use tercet_core::quant::Grid;
use tracing::trace_span;

pub use codes::Codes;
pub use weights::read_weights;
pub use write::{
    Destination, side_files, write_centroids, write_labels, write_points, write_representatives,
};

use crate::Error;

/// How to read what a file does not say about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The byte between the fields of a CSV file; `None`: a tab, a semicolon or a comma, the first of these that its
    /// first line holds.
    pub delimiter: Option<u8>,
}

/// The values of points, row after row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// int8 codes on a grid: value = `(code − zero point) · scale`. Plain int8 data has scale 1 and zero point 0.
    I8 {
        /// One code a value.
        codes: Vec<i8>,
        /// What the codes stand for.
        grid: Grid,
    },
    /// 0 to 255, as images have them.
    U8(Vec<u8>),
    /// Finite floats.
    F32(Vec<f32>),
}

impl Values {
    /// int8 values that stand for themselves.
    pub fn int8(values: Vec<i8>) -> Self {
        Self::I8 {
            codes: values,
            grid: codes::unit(0),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::I8 { codes, .. } => codes.len(),
            Self::U8(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// n points of d values each, and where they came from.
#[derive(Clone, Debug)]
pub struct Points {
    path: PathBuf,
    name: String,
    shape: Vec<usize>,
    values: Values,
    header: Option<Vec<String>>,
}

impl Points {
    /// Reads the points that `spec` names: `data.npy`, `data.csv`, `model.safetensors:tensor`, `model.gguf:tensor`.
    ///
    /// The tensor may be left out where the file holds one, or one of two dimensions. The first dimension counts the
    /// points and the others are a point's values, so that images (n × height × width) are taken as n × height·width;
    /// a tensor of one dimension is n points of one value. Files named `.csv`, `.tsv` and `.txt` are read as text
    /// unless their first bytes are another format's; the format of all others is told by content.
    ///
    /// int8, uint8 and bool stay as they are, and so do int8 codes with one scale for the tensor. f32, f16, bf16,
    /// 16-bit integers and quantized tensors become the `f32` they stand for, f64 and decimal text the nearest `f32`,
    /// and integers of 32 and 64 bits are taken where `f32` holds them exactly. Memory: the values once; the file is
    /// mapped.
    ///
    /// A CSV file has one point a line. Its first line is a header where none of its fields is a number. Fields may be
    /// quoted; blanks around them are dropped.
    ///
    /// # Errors
    /// Those of [`Model::open`](crate::Model::open); [`Error::NoSuchTensor`]; [`Error::Unsupported`] where the spec
    /// names no tensor and several could be meant; [`Error::Tensor`] for a tensor without values, of a type that is
    /// not read, or with a value that is not finite, which is named by row and column, counted from 0;
    /// [`Error::BadFile`] for a CSV file that is empty or has a field that is missing, empty or no finite number,
    /// which is named by line and column, counted from 1.
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

    /// Points in memory: `values` holds `rows · dims` of them, row after row.
    ///
    /// # Errors
    /// [`Error::Options`] where the counts do not fit or are 0, and where a value is not finite.
    pub fn new(name: &str, rows: usize, dims: usize, values: Values) -> Result<Self, Error> {
        if rows == 0 || dims == 0 || rows.checked_mul(dims) != Some(values.len()) {
            let found = values.len();
            return Err(Error::options(format!(
                "{found} values are not {rows} points of {dims}"
            )));
        }
        let points = Self {
            path: PathBuf::new(),
            name: name.to_owned(),
            shape: vec![rows, dims],
            values,
            header: None,
        };
        match points.first_not_finite() {
            Some((row, column)) => Err(Error::options(format!(
                "`{name}`: row {row}, column {column} (from 0) is not finite"
            ))),
            None => Ok(points),
        }
    }

    /// The file they came from; empty for points made in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensor's name, or the file's without its extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tensor's shape as the file has it: the points first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// n, the number of points; at least 1.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// d, the number of values of a point; at least 1.
    pub fn dims(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// The values, row after row.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The names of the columns, where a CSV file began with them.
    pub fn header(&self) -> Option<&[String]> {
        self.header.as_deref()
    }

    /// All values as `f32`, row after row; borrowed where they are.
    pub fn to_f32(&self) -> Cow<'_, [f32]> {
        match &self.values {
            Values::I8 { codes, grid } => codes.iter().map(|&code| grid.value(code)).collect(),
            Values::U8(values) => values.iter().map(|&value| f32::from(value)).collect(),
            Values::F32(values) => Cow::Borrowed(values),
        }
    }

    /// So many values from `first` on as `f32`: where they lie, or in `buffer`. They are there.
    pub(crate) fn view<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        buffer.clear();
        match &self.values {
            Values::I8 { codes, grid } => {
                let codes = &codes[first..][..len];
                buffer.extend(codes.iter().map(|&code| grid.value(code)));
            }
            Values::U8(values) => {
                buffer.extend(values[first..][..len].iter().map(|&value| f32::from(value)));
            }
            Values::F32(values) => return &values[first..][..len],
        }
        buffer
    }

    /// Writes the values of point `row` as `f32`; `None` unless there is such a row and `out` holds d values.
    pub fn read_row(&self, row: usize, out: &mut [f32]) -> Option<()> {
        fn part<T>(values: &[T], row: usize, dims: usize) -> Option<&[T]> {
            let start = row.checked_mul(dims)?;
            values.get(start..start.checked_add(dims)?)
        }
        let dims = self.dims();
        if out.len() != dims {
            return None;
        }
        match &self.values {
            Values::I8 { codes, grid } => {
                for (x, &code) in out.iter_mut().zip(part(codes, row, dims)?) {
                    *x = grid.value(code);
                }
            }
            Values::U8(values) => {
                for (x, &value) in out.iter_mut().zip(part(values, row, dims)?) {
                    *x = f32::from(value);
                }
            }
            Values::F32(values) => out.copy_from_slice(part(values, row, dims)?),
        }
        Some(())
    }

    /// What rules these points out.
    pub(crate) fn refuse(&self, reason: &dyn std::fmt::Display) -> Error {
        if self.path.as_os_str().is_empty() {
            Error::unsupported(Path::new(&self.name), reason)
        } else {
            Error::unsupported(&self.path, reason)
        }
    }

    /// Some of the points, in the order of `rows`, without a file of their own; those that are not there are left out.
    pub fn select(&self, rows: &[usize]) -> Result<Self, Error> {
        fn pick<T: Copy>(values: &[T], dims: usize, rows: &[usize]) -> Vec<T> {
            let all: Vec<&[T]> = rows
                .iter()
                .filter_map(|&row| values.chunks_exact(dims).nth(row))
                .collect();
            all.concat()
        }
        let dims = self.dims();
        let values = match &self.values {
            Values::I8 { codes, grid } => Values::I8 {
                codes: pick(codes, dims, rows),
                grid: *grid,
            },
            Values::U8(values) => Values::U8(pick(values, dims, rows)),
            Values::F32(values) => Values::F32(pick(values, dims, rows)),
        };
        Self::new(&self.name, values.len() / dims, dims, values)
    }

    /// Row and column of the first value that is not finite.
    fn first_not_finite(&self) -> Option<(usize, usize)> {
        let Values::F32(values) = &self.values else {
            return None;
        };
        let index = codes::stats(values).first_bad? as usize;
        Some((index / self.dims(), index % self.dims()))
    }

    /// The error of a value that cannot be taken, at an index into all values.
    fn bad_value(path: &Path, name: &str, dims: usize, index: usize, what: &str) -> Error {
        let (row, column) = (index / dims, index % dims);
        Error::tensor(
            path,
            name,
            format!("row {row}, column {column} (from 0) {what}"),
        )
    }
}
