//! Writing the results of clustering: centroids, labels and points.

use std::path::{Path, PathBuf};

use tercet_core::quant::Grid;

use super::{Points, Values, csv, unit};
use crate::Error;
use crate::dtype::DType;
use crate::file::output::Output;
use crate::file::safetensors::Writer;
use crate::file::{OutputTensor, npy};
use crate::tensor_file::Metadata;

/// Number of bytes that are collected before they are written.
const BUFFER: usize = 1 << 20;

/// The output file of a result.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The file. It appears when it is complete.
    pub path: &'a Path,
    /// The input files. The output must not be one of them.
    pub inputs: &'a [&'a Path],
    /// Replace an existing file.
    pub overwrite: bool,
}

impl Destination<'_> {
    /// Checks that the file could be written now, so that a long computation does not end in an error of
    /// [`Output::create`].
    ///
    /// # Errors
    /// Those of [`Output::create`]; [`Error::Unsupported`] unless the file has one of these extensions.
    pub fn check(&self, extensions: &[&str]) -> Result<(), Error> {
        if !extensions.contains(&extension(self.path)) {
            let reason = format!("the output must end in {}", listed(extensions));
            return Err(Error::unsupported(self.path, reason));
        }
        self.create().map(drop)
    }

    fn create(&self) -> Result<Output, Error> {
        Output::create(self.path, self.inputs.iter().copied(), self.overwrite)
    }
}

/// Writes the centroids of `points`, k × d codes on `grid`, in the data's own units; returns the file's size in bytes.
/// The values are those of the int8 grid that clustering used.
///
/// `.npy`: the values as `f32`, or the codes themselves as `int8` if the grid has scale 1 and zero point 0.
/// `.csv`: one centroid per line, each value as the shortest decimal number that reads back to its `f32`. If the points
/// came from a CSV file, the first line is its header, if it had one, and the fields have its separator; else they have
/// commas. The other formats have no place for a header.
/// `.safetensors`: the codes as tensor `centroids` with `centroids_scale` and, unless it is 0, `centroids_zero_point`
/// beside it. Only this format holds the grid. [`Points::open`] and [`Points::on_grid`] read all three back to the
/// same codes.
///
/// # Errors
/// [`Error::Unsupported`] for another extension, [`Error::Options`] unless d divides the codes, and those of
/// [`Output::create`].
pub fn write_centroids(
    to: Destination<'_>,
    codes: &[i8],
    grid: &Grid,
    points: &Points,
) -> Result<u64, Error> {
    let dims = points.dims();
    let values = Values::I8 {
        codes: codes.to_vec(),
        grid: *grid,
    };
    let rows = codes.len().checked_div(dims).unwrap_or(0);
    let centroids = Points {
        header: points.header.clone(),
        delimiter: points.delimiter,
        ..Points::new("centroids", rows, dims, values)?
    };
    write_points(to, &centroids)
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
        "csv" => {
            let values = points.to_f32();
            let rows = values.chunks(points.dims());
            let head = (points.header(), points.delimiter.unwrap_or(b','));
            csv::write(to.create()?, head, rows, csv::float)
        }
        "safetensors" => tensors(to, points, &[]),
        _ => Err(Error::unsupported(
            to.path,
            "points are written to .npy, .csv or .safetensors; name such an output",
        )),
    }
}

/// Writes points that stand for others: the points as [`write_points`] does, their weights, and their rows in the data
/// that they were chosen from. Returns the size of all files in bytes.
///
/// `.safetensors`: tensors `weights` and `indices` of `int64` beside the points. `.npy` and `.csv`: separate files
/// beside it, [`side_files`], which are written first. [`read_weights`](super::read_weights) reads the weights back,
/// those of a `.csv` file up to 2²⁴.
///
/// # Errors
/// As [`write_points`]; [`Error::Options`] unless there is a weight and an index for each point.
pub fn write_representatives(
    to: Destination<'_>,
    points: &Points,
    weights: &[u64],
    indices: &[u64],
) -> Result<u64, Error> {
    if [weights.len(), indices.len()] != [points.rows(); 2] {
        return Err(Error::options(
            "one weight and one index per point are needed",
        ));
    }
    let sides = side_files(to.path);
    if sides.is_empty() {
        return tensors(to, points, &[("weights", weights), ("indices", indices)]);
    }
    let mut bytes = 0;
    for (path, values) in sides.iter().zip([weights, indices]) {
        let to = Destination { path, ..to };
        bytes += if extension(path) == "csv" {
            csv::write(to.create()?, csv::ONE, values.chunks(1), u64::to_string)?
        } else {
            let values = values.iter().flat_map(|value| value.to_le_bytes());
            array(to, &[points.rows()], DType::I64, values)?
        };
    }
    Ok(bytes + write_points(to, points)?)
}

/// Returns the paths to which [`write_representatives`] writes weights and indices beside `name.npy`,
/// `name.weights.npy` and `name.indices.npy`, and those beside `name.csv` in the same way; none for other formats,
/// which hold them in the file itself.
pub fn side_files(path: &Path) -> Vec<PathBuf> {
    let extension = extension(path);
    if !matches!(extension, "npy" | "csv") {
        return Vec::new();
    }
    let side = |name| path.with_extension(format!("{name}.{extension}"));
    ["weights", "indices"].map(side).to_vec()
}

/// Writes one label per point, as `int32` (`.npy`) or as one whole number per line (`.csv`, without a header); returns
/// the file's size in bytes.
///
/// # Errors
/// [`Error::Unsupported`] for another extension or a label above `i32::MAX`, and those of [`Output::create`].
pub fn write_labels(to: Destination<'_>, labels: &[u32]) -> Result<u64, Error> {
    let extension = extension(to.path);
    if !matches!(extension, "npy" | "csv") {
        return Err(Error::unsupported(
            to.path,
            "labels are written to .npy or .csv; name such an output",
        ));
    }
    if let Some(label) = labels.iter().find(|&&label| i32::try_from(label).is_err()) {
        let reason = format!("label {label} does not fit int32");
        return Err(Error::unsupported(to.path, reason));
    }
    if extension == "csv" {
        return csv::write(to.create()?, csv::ONE, labels.chunks(1), u32::to_string);
    }
    let bytes = labels.iter().flat_map(|label| label.to_le_bytes());
    array(to, &[labels.len()], DType::I32, bytes)
}

/// Lists extensions: `.npy, .csv or .safetensors`.
fn listed(extensions: &[&str]) -> String {
    match extensions {
        [others @ .., last] if !others.is_empty() => format!(".{} or .{last}", others.join(", .")),
        _ => format!(".{}", extensions.concat()),
    }
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("")
}

/// Returns true if codes equal their values.
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

/// Passes bytes on in pieces.
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

fn tensors(to: Destination<'_>, points: &Points, others: &[(&str, &[u64])]) -> Result<u64, Error> {
    let name = points.name();
    let shape = [points.rows(), points.dims()];
    let mut tensors: Vec<(String, Vec<usize>, DType, Vec<u8>)> = Vec::new();
    let mut add = |suffix: &str, shape: &[usize], dtype, bytes| {
        tensors.push((format!("{name}{suffix}"), shape.to_vec(), dtype, bytes));
    };
    match points.values() {
        Values::I8 { codes, grid } => {
            let bytes = codes.iter().map(|&code| code as u8).collect();
            add("", &shape, DType::I8, bytes);
            if !same(grid) {
                add("_scale", &[], DType::F32, grid.scale.to_le_bytes().to_vec());
            }
            if grid.zero_point != 0 {
                add("_zero_point", &[], DType::I8, vec![grid.zero_point as u8]);
            }
        }
        Values::U8(values) => add("", &shape, DType::U8, values.clone()),
        Values::F32(values) => {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            add("", &shape, DType::F32, bytes);
        }
    }
    for (name, values) in others {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        tensors.push(((*name).to_owned(), vec![values.len()], DType::I64, bytes));
    }
    let parts: Vec<OutputTensor> = tensors
        .iter()
        .map(|(name, shape, dtype, bytes)| OutputTensor {
            name: name.clone(),
            shape: shape.clone(),
            dtype: *dtype,
            bytes: bytes.len() as u64,
        })
        .collect();
    let mut writer = Writer::new(to.create()?, &Metadata::new(), &parts)?;
    for (index, (_, _, _, bytes)) in tensors.iter().enumerate() {
        writer.write(index, bytes)?;
    }
    writer.finish()
}
