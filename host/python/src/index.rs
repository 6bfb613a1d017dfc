//! Search.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::values;
use crate::error::{raised, refused};
use crate::watch::Watch;

/// Multiplications of a part of a search.
const PART: usize = 1 << 34;

/// Rows of int8 codes, for the nearest ones to queries.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct Index(tercet_host::Index);

/// The scores and the numbers of the rows found, a row per query.
type Hits<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<i64>>);

#[pymethods]
impl Index {
    /// Quantizes the rows of `rows`; `metric` is `cosine` or `dot`.
    #[new]
    fn new(py: Python<'_>, rows: PyReadonlyArrayDyn<'_, f32>, metric: &str) -> PyResult<Self> {
        let &[_, dims] = rows.shape() else {
            return Err(refused(format_args!(
                "rows have the shape {:?}; an index takes two dimensions",
                rows.shape()
            )));
        };
        let values = values(&rows)?;
        let index = match metric {
            "cosine" => py.detach(|| tercet_host::Index::cosine(values, dims)),
            "dot" => py.detach(|| tercet_host::Index::dot(values, dims)),
            other => {
                return Err(refused(format_args!(
                    "no metric is called `{other}`; there are cosine and dot"
                )));
            }
        };
        index.map(Self).map_err(raised)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Number of values per row.
    #[getter]
    fn dims(&self) -> usize {
        self.0.dims()
    }

    /// Returns scores (float32) and row numbers (int64) of the best `k` rows for each query, the best first.
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: PyReadonlyArrayDyn<'py, f32>,
        k: usize,
    ) -> PyResult<Hits<'py>> {
        let values = values(&queries)?;
        // Ctrl-C ends a search between parts of a fraction of a second.
        let rows = self.0.len().saturating_mul(self.0.dims()).max(1);
        let part = (PART / rows).max(64).saturating_mul(self.0.dims().max(1));
        let watch = Watch::new(None);
        let found = watch.run(py, || {
            if values.len() <= part {
                return self.0.nearest_all(values, k).map_err(raised);
            }
            let mut found = Vec::new();
            for part in values.chunks(part) {
                watch.tell(());
                match self.0.nearest_all(part, k) {
                    Ok(more) => found.extend(more),
                    // An error names a query by its place among all of them.
                    Err(_) => return self.0.nearest_all(values, k).map_err(raised),
                }
            }
            Ok(found)
        })?;
        let (count, all) = (found.len(), || found.iter().flatten());
        let scores = Array2::from_shape_vec((count, k), all().map(|hit| hit.score).collect());
        let rows = all().map(|hit| hit.index as i64).collect();
        let rows = Array2::from_shape_vec((count, k), rows);
        Ok((
            scores.map_err(refused)?.into_pyarray(py),
            rows.map_err(refused)?.into_pyarray(py),
        ))
    }
}
