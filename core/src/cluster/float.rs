//! Measures a clustering of int8 codes in the units of the floats that were quantized.
//!
//! Float data is quantized to an int8 grid ([`crate::quant::Grid`], per tensor: abs-max, affine or a percentile by
//! [`crate::quant::calibrate`]), clustered as codes, and measured here. [`crate::quant::Grid::value`] converts
//! centroids back, and [`inertia`] is the true inertia, of the unquantized points.
//!
//! ```
//! use tercet_core::cluster::float::{Labelled, inertia};
//! use tercet_core::cluster::{Kmeans, Points, Steps, Update, kmeans};
//! use tercet_core::engine::Buffers;
//! use tercet_core::number::Stats;
//! use tercet_core::quant::Grid;
//! use tercet_core::scalar::Clusters;
//!
//! // Four readings of two sensors, on the int8 grid of the largest magnitude.
//! let values = [0.9f32, 2.1, 1.0, 1.9, -6.0, 8.0, -5.8, 8.2];
//! let grid = Grid::symmetric(Stats::of(&values).abs_max(), 127)?;
//! let mut codes = [0; 8];
//! grid.apply(&values, &mut codes)?;
//!
//! let buffers = Buffers {
//!     labels: &mut [0; 4],
//!     distances: &mut [0; 4],
//!     centroids: &mut [0; 4],
//!     kept: &mut [],
//!     norms: &mut [0; 2],
//!     sums: &mut [0i32; 4],
//!     counts: &mut [0; 2],
//! };
//! let mut clusters = Clusters::new(Points::new(&codes, 2)?, 2, Update::Mean, buffers)?;
//! kmeans(&mut clusters, &Kmeans::default(), &mut Steps::Full, &mut |_, _, _| ())?;
//!
//! // Back in the data's units, and what the labelling is worth there.
//! let mut centroids = [0.0; 4];
//! for (value, &code) in centroids.iter_mut().zip(clusters.centroids()) {
//!     *value = grid.value(code);
//! }
//! let labels = clusters.labels();
//! let found = inertia(&Labelled { values: &values, dims: 2, weights: None, labels, centroids: &centroids })?;
//! assert!(found < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::ClusterError;
use crate::number::{Element, Lanes, RUN};

/// Float points with their labels and the labelled centroids.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a, T> {
    /// The points, n · d.
    pub values: &'a [T],
    /// Coordinates per point.
    pub dims: usize,
    /// n weights, or `None`.
    pub weights: Option<&'a [u32]>,
    /// n labels.
    pub labels: &'a [u32],
    /// k · d centroids, in the units of `values`.
    pub centroids: &'a [f32],
}

impl<T: Element> Labelled<'_, T> {
    /// Checks lengths and labels.
    ///
    /// # Errors
    /// [`ClusterError::Empty`] without points; [`ClusterError::Ragged`]; [`ClusterError::Length`];
    /// [`ClusterError::Index`] for a label without a centroid.
    pub fn check(&self) -> Result<(), ClusterError> {
        let (len, dims) = (self.values.len(), self.dims);
        let Some(points) = len.checked_div(dims).filter(|&points| points > 0) else {
            return Err(ClusterError::Empty);
        };
        if points * dims != len {
            return Err(ClusterError::Ragged { len, dims });
        }
        let weights = self.weights.map_or(points, <[u32]>::len);
        for found in [self.labels.len(), weights] {
            if found != points {
                return Err(ClusterError::Length {
                    expected: points,
                    found,
                });
            }
        }
        let count = self.centroids.len() / dims.max(1);
        match self.labels.iter().find(|&&label| label as usize >= count) {
            Some(&label) => Err(ClusterError::Index {
                index: label as usize,
                count,
            }),
            None => Ok(()),
        }
    }

    /// Returns the sum of the terms w·(x − c)² of run `run`: at most 65,536 values, from the value `run` · 65,536 on.
    ///
    /// The runs of a sum are independent, so threads can share them ([`Lanes::append`]). O(65,536).
    pub fn run(&self, run: usize) -> Lanes<f64> {
        let mut lanes = Lanes::<f64>::new();
        let dims = self.dims.max(1);
        let mut at = run.saturating_mul(RUN);
        let end = at.saturating_add(RUN).min(self.values.len());
        while at < end {
            let (row, from) = (at / dims, at % dims);
            let count = (dims - from).min(end - at);
            let label = self.labels.get(row).map_or(0, |&label| label as usize);
            let x = self.values.get(at..at + count).unwrap_or_default();
            let start = label * dims + from;
            let c = self.centroids.get(start..start + count).unwrap_or_default();
            match self.weights {
                None => {
                    lanes.squared_error(x, c);
                }
                Some(weights) => {
                    let weight = f64::from(weights.get(row).copied().unwrap_or(0));
                    for (x, c) in x.iter().zip(c) {
                        let difference = f64::from(x.to_f32()) - f64::from(*c);
                        lanes.terms(&[weight * (difference * difference)]);
                    }
                }
            }
            at += count;
        }
        lanes
    }
}

/// Returns Σ w·‖x − c‖² in `f64`, over all values in their order, by the rule of [`crate::number::lanes`].
///
/// A term is fl(x − c) squared, then times w if there are weights. Each step is rounded.
///
/// # Errors
/// Those of [`Labelled::check`].
pub fn inertia<T: Element>(labelled: &Labelled<'_, T>) -> Result<f64, ClusterError> {
    labelled.check()?;
    let mut total = Lanes::<f64>::new();
    for run in 0..labelled.values.len().div_ceil(RUN) {
        // Only the last run is short, so each append is at the end of a run.
        let _ = total.append(&labelled.run(run));
    }
    Ok(total.total())
}
