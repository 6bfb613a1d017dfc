//! Points: rows of numbers from a file, the input of clustering and search.
//!
//! [`Points::open`] reads npy, safetensors, GGUF and CSV files. Integers of eight bits stay exactly as they are;
//! everything else becomes `f32`. [`Points::to_codes`] puts the values on an int8 grid and returns the grid.
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

/// Number of values that one thread takes at a time: 64 KiB as `f32`, so that source and codes stay in its cache.
pub(crate) const TILE: usize = 1 << 14;

/// The values of points, row after row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// int8 codes on a grid: value = `(code − zero point) · scale`. Plain int8 data has scale 1 and zero point 0.
    I8 {
        /// One code per value.
        codes: Vec<i8>,
        /// The grid that gives the codes their values.
        grid: Grid,
    },
    /// Integers from 0 to 255, as in images.
    U8(Vec<u8>),
    /// Finite floats.
    F32(Vec<f32>),
}

impl Values {
    /// Returns int8 values that stand for themselves.
    pub fn int8(values: Vec<i8>) -> Self {
        Self::I8 {
            codes: values,
            grid: codes::unit(0),
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::I8 { codes, .. } => codes.len(),
            Self::U8(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// Returns true if there are no values.
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

/// n points of d values each, and their origin.
#[derive(Clone, Debug)]
pub struct Points {
    path: PathBuf,
    name: String,
    shape: Vec<usize>,
    values: Values,
    header: Option<Vec<String>>,
    /// The byte between the fields of the CSV file that they came from.
    delimiter: Option<u8>,
}

impl Points {
    /// Creates points in memory. `values` holds `rows · dims` values, row after row.
    ///
    /// # Errors
    /// [`Error::Options`] if the counts do not fit or are 0, or a value is not finite.
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
            delimiter: None,
        };
        match points.first_not_finite() {
            Some((row, column)) => Err(Error::options(format!(
                "`{name}`: row {row}, column {column} (from 0) is not finite"
            ))),
            None => Ok(points),
        }
    }

    /// Creates points in memory from floats or eight-bit integers. `values` holds one point of `dims` values after
    /// another.
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

    /// Returns the path of the file they came from; empty for points made in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the tensor's name, or the file's name without its extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tensor's shape as in the file. The first dimension counts the points.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns n, the number of points; at least 1.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Returns d, the number of values per point; at least 1.
    pub fn dims(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// Returns the values, row after row.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the names of the columns, if a CSV file began with them.
    pub fn header(&self) -> Option<&[String]> {
        self.header.as_deref()
    }

    /// Returns all values as `f32`, row after row; borrowed if they are stored as `f32`.
    pub fn to_f32(&self) -> Cow<'_, [f32]> {
        match &self.values {
            Values::I8 { codes, grid } => codes.iter().map(|&code| grid.value(code)).collect(),
            Values::U8(values) => values.iter().map(|&value| f32::from(value)).collect(),
            Values::F32(values) => Cow::Borrowed(values),
        }
    }

    /// Returns `len` values from `first` on as `f32`, borrowed from the points or written to `buffer`. The points must
    /// have these values.
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

    /// Returns the error that refuses these points for a reason.
    pub(crate) fn refuse(&self, reason: &dyn std::fmt::Display) -> Error {
        if self.path.as_os_str().is_empty() {
            Error::unsupported(Path::new(&self.name), reason)
        } else {
            Error::unsupported(&self.path, reason)
        }
    }

    /// Returns some of the points, in the order of `rows`, with the header and the separator of a CSV file and with an
    /// empty path. Rows that do not exist are left out.
    ///
    /// # Errors
    /// [`Error::Options`] if no row is left.
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
        Ok(Self {
            header: self.header.clone(),
            delimiter: self.delimiter,
            ..Self::new(&self.name, values.len() / dims, dims, values)?
        })
    }

    /// Returns the row and column of the first value that is not finite.
    fn first_not_finite(&self) -> Option<(usize, usize)> {
        let Values::F32(values) = &self.values else {
            return None;
        };
        let index = codes::stats(values).first_bad? as usize;
        Some((index / self.dims(), index % self.dims()))
    }

    /// Returns the error for a value that cannot be taken. `index` counts all values.
    fn bad_value(path: &Path, name: &str, dims: usize, index: usize, what: &str) -> Error {
        let (row, column) = (index / dims, index % dims);
        Error::tensor(
            path,
            name,
            format!("row {row}, column {column} (from 0) {what}"),
        )
    }
}
