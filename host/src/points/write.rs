//! What clustering writes: centroids, labels and points.

use std::path::Path;

use tercet_core::quant::Grid;

use super::{Points, Values, codes::unit};
use crate::Error;
use crate::dtype::DType;
use crate::file::output::Output;
use crate::file::safetensors::Writer;
use crate::file::{Part, npy};
use crate::model::Metadata;

/// Bytes that are put together before they are written.
const BUFFER: usize = 1 << 20;

/// Where a result goes.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The file; it appears when it is whole.
    pub path: &'a Path,
    /// The files it is made from, which it must not be.
    pub inputs: &'a [&'a Path],
    /// Replace a file that is there.
    pub overwrite: bool,
}

impl Destination<'_> {
    fn create(&self) -> Result<Output, Error> {
        Output::create(self.path, self.inputs.iter().copied(), self.overwrite)
    }
}

/// Writes k centroids, k × `dims` codes on `grid`, in the data's own units; returns the file's bytes.
///
/// `.npy`: the values as `f32`, or the codes themselves as `int8` where the grid has scale 1 and zero point 0. `.safetensors`:
/// the codes as tensor `centroids` with `centroids_scale` and, unless it is 0, `centroids_zero_point` beside it. Both are
/// read back by [`Points::open`] and [`Points::on_grid`] to the same codes.
///
/// # Errors
/// [`Error::Unsupported`] for another extension, [`Error::Options`] unless `dims` divides the codes, and those of
/// [`Output::create`].
pub fn write_centroids(
    to: Destination<'_>,
    codes: &[i8],
    dims: usize,
    grid: &Grid,
) -> Result<u64, Error> {
    let values = Values::I8 {
        codes: codes.to_vec(),
        grid: *grid,
    };
    let rows = codes.len().checked_div(dims).unwrap_or(0);
    let points = Points::new("centroids", rows, dims, values)?;
    write_points(to, &points)
}

/// Writes points as [`write_centroids`] does; in `.npy`, uint8 stays uint8.
///
/// # Errors
/// As [`write_centroids`].
pub fn write_points(to: Destination<'_>, points: &Points) -> Result<u64, Error> {
    let shape = [points.rows(), points.dims()];
    match extension(to.path) {
        "npy" => match points.values() {
            Values::I8 { codes, grid } if same(grid) => {
                let bytes = codes.iter().map(|&code| code as u8);
                array(to, &shape, DType::I8, bytes)
            }
            Values::U8(values) => array(to, &shape, DType::U8, values.iter().copied()),
            _ => {
                let values = points.to_f32();
                array(
                    to,
                    &shape,
                    DType::F32,
                    values.iter().flat_map(|x| x.to_le_bytes()),
                )
            }
        },
        "safetensors" => tensors(to, points),
        _ => Err(Error::unsupported(
            to.path,
            "points are written to .npy or .safetensors",
        )),
    }
}

/// Writes one label a point as `int32`; returns the file's bytes.
///
/// # Errors
/// [`Error::Unsupported`] for another extension than `.npy` or a label above `i32::MAX`, and those of
/// [`Output::create`].
pub fn write_labels(to: Destination<'_>, labels: &[u32]) -> Result<u64, Error> {
    if extension(to.path) != "npy" {
        return Err(Error::unsupported(to.path, "labels are written to .npy"));
    }
    if let Some(label) = labels.iter().find(|&&label| i32::try_from(label).is_err()) {
        let reason = format!("label {label} is no int32");
        return Err(Error::unsupported(to.path, reason));
    }
    let bytes = labels.iter().flat_map(|label| label.to_le_bytes());
    array(to, &[labels.len()], DType::I32, bytes)
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("")
}

/// True where codes are their values.
fn same(grid: &Grid) -> bool {
    (grid.scale, grid.zero_point) == (unit(0).scale, unit(0).zero_point)
}

fn array(
    to: Destination<'_>,
    shape: &[usize],
    dtype: DType,
    bytes: impl Iterator<Item = u8>,
) -> Result<u64, Error> {
    let mut output = to.create()?;
    npy::write_header(&mut output, "", shape, dtype)?;
    pieces(bytes, |piece| output.write(piece))?;
    output.finish()
}

/// Hands bytes on in pieces.
fn pieces(
    mut bytes: impl Iterator<Item = u8>,
    mut write: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        buffer.clear();
        buffer.extend(bytes.by_ref().take(BUFFER));
        if buffer.is_empty() {
            return Ok(());
        }
        write(&buffer)?;
    }
}

fn tensors(to: Destination<'_>, points: &Points) -> Result<u64, Error> {
    let part = |suffix: &str, shape: &[usize], dtype: DType| Part {
        name: format!("{}{suffix}", points.name()),
        shape: shape.to_vec(),
        dtype,
        bytes: dtype.bytes(shape.iter().product()).unwrap_or(0) as u64,
    };
    let shape = [points.rows(), points.dims()];
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    match points.values() {
        Values::I8 { codes, grid } => {
            parts.push(part("", &shape, DType::I8));
            bytes.push(codes.iter().map(|&code| code as u8).collect());
            if !same(grid) {
                parts.push(part("_scale", &[], DType::F32));
                bytes.push(grid.scale.to_le_bytes().to_vec());
            }
            if grid.zero_point != 0 {
                parts.push(part("_zero_point", &[], DType::I8));
                bytes.push(vec![grid.zero_point as u8]);
            }
        }
        Values::U8(values) => {
            parts.push(part("", &shape, DType::U8));
            bytes.push(values.clone());
        }
        Values::F32(values) => {
            parts.push(part("", &shape, DType::F32));
            bytes.push(values.iter().flat_map(|x| x.to_le_bytes()).collect());
        }
    }
    let mut writer = Writer::new(to.create()?, &Metadata::new(), &parts)?;
    for (index, bytes) in bytes.iter().enumerate() {
        writer.write(index, bytes)?;
    }
    writer.finish()
}
