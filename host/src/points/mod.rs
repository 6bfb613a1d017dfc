//! Points: rows of numbers from a file, as clustering and search take them.
//!
//! [`Points::open`] reads npy, safetensors, GGUF and CSV files. What is an integer of eight bits stays one, exactly;
//! everything else becomes `f32`. [`Points::to_codes`] puts the values on an int8 grid, and says which.
//!
//! ```
//! use tercet_core::quant::calibrate::{RangeRule, Scheme};
//! use tercet_host::points::{Points, ReadOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("heights.csv");
//! std::fs::write(&path, "width,height\n1.5,-2\n0.5,1\n")?;
//! let points = Points::open(path.to_str().unwrap(), &ReadOptions::default())?;
//! assert_eq!((points.rows(), points.dims()), (2, 2));
//!
//! let codes = points.to_codes(RangeRule::AbsMax, Scheme::Symmetric)?;
//! assert_eq!(codes.codes, [95, -127, 32, 64]);
//! assert_eq!(codes.grid.value(-127), -2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codes;
#[cfg(feature = "files")]
mod file;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use tercet_core::quant::Grid;

pub use codes::Codes;
#[cfg(feature = "files")]
pub use file::{
    Destination, ReadOptions, read_weights, side_files, write_centroids, write_labels,
    write_points, write_representatives,
};

use crate::Error;

/// Values that one thread takes at a time: 64 KiB as `f32`, so that source and codes stay in its cache.
pub(crate) const TILE: usize = 1 << 14;

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

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl From<Vec<i8>> for Values {
    fn from(values: Vec<i8>) -> Self {
        Self::int8(values)
    }
}

impl From<Vec<u8>> for Values {
    fn from(values: Vec<u8>) -> Self {
        Self::U8(values)
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

    /// Points of `dims` values each in memory, one after another, of floats or of eight-bit integers.
    ///
    /// ```
    /// use tercet_host::points::Points;
    ///
    /// let points = Points::from_rows(2, vec![0.0, 0.5, 1.0, 1.5])?;
    /// assert_eq!((points.rows(), points.dims()), (2, 2));
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Options`] if there are no values, if `dims` does not divide their number, and for a value that is not
    /// finite.
    pub fn from_rows(dims: usize, values: impl Into<Values>) -> Result<Self, Error> {
        let values = values.into();
        Self::new("points", values.len() / dims.max(1), dims, values)
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
