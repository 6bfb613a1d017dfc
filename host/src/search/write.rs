//! Writes hits as arrays, for other programs.

use std::path::Path;

use super::SearchReport;
use crate::Error;
use crate::dtype::DType;
use crate::file::npy;
use crate::file::output::Output;

/// An npy file for hits. It is created before the search, so that a long search does not fail at the end because the
/// file exists. If it is dropped before it is written, it leaves no file.
#[derive(Debug)]
pub struct HitsFile(Output);

impl HitsFile {
    /// Creates the file; see [`Output::create`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another extension than `.npy`, and those of [`Output::create`].
    pub fn create<'a>(
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Path>,
        overwrite: bool,
    ) -> Result<Self, Error> {
        if path.extension() != Some("npy".as_ref()) {
            return Err(Error::unsupported(
                path,
                "hits are written to .npy; name such an output",
            ));
        }
        Output::create(path, inputs, overwrite).map(Self)
    }

    /// Writes the rows found as `int64`, queries × k; returns the file's size in bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if queries have different numbers of hits, as with a threshold; [`Error::Io`].
    pub fn write_indices(self, report: &SearchReport) -> Result<u64, Error> {
        let indices = report.hits.iter().flatten().map(|hit| hit.index as i64);
        self.write(report, DType::I64, indices.flat_map(i64::to_le_bytes))
    }

    /// Writes the scores as `float32`, queries × k; returns the file's size in bytes.
    ///
    /// # Errors
    /// As [`HitsFile::write_indices`].
    pub fn write_scores(self, report: &SearchReport) -> Result<u64, Error> {
        let scores = report.hits.iter().flatten().map(|hit| hit.score);
        self.write(report, DType::F32, scores.flat_map(f32::to_le_bytes))
    }

    fn write(
        mut self,
        report: &SearchReport,
        dtype: DType,
        bytes: impl Iterator<Item = u8>,
    ) -> Result<u64, Error> {
        let k = report.hits.first().map_or(0, Vec::len);
        if report.hits.iter().any(|hits| hits.len() != k) {
            let reason = "queries have different numbers of hits, which do not fit into one array";
            return Err(Error::unsupported(self.0.path(), reason));
        }
        npy::write_header(&mut self.0, "", &[report.hits.len(), k], dtype)?;
        self.0.write(&bytes.collect::<Vec<u8>>())?;
        self.0.finish()
    }
}
