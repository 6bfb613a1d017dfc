//! linfa's Lloyd, in f32.

use crate::{Array, Peer, Result, TimedWork, array};
use linfa::DatasetBase;
use linfa::traits::{Fit, Predict};
use linfa_clustering::{KMeans, KMeansInit};
use linfa_nn::distance::L2Dist;
use ndarray::Array2;
use rand_xoshiro::Xoshiro256Plus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const PEER: Peer = Peer {
    name: "linfa",
    version: "0.8",
    work: &[("kmeans", kmeans)],
};

struct Lloyd {
    points: DatasetBase<Array2<f32>, ndarray::Array1<()>>,
    init: Array2<f32>,
    steps: Vec<u64>,
    means: Option<KMeans<f32, L2Dist>>,
}

fn kmeans(arrays: &BTreeMap<String, Array>, options: &Value) -> Result<Box<dyn TimedWork>> {
    let matrix = |name| {
        let array = array(arrays, name)?;
        let [rows, cols] = array.shape[..] else {
            return Err(format!("{name} is no matrix").into());
        };
        Result::Ok(Array2::from_shape_vec((rows, cols), array.values.clone())?)
    };
    Ok(Box::new(Lloyd {
        points: DatasetBase::from(matrix("points")?),
        init: matrix("init")?,
        steps: serde_json::from_value(options["steps"].clone())?,
        means: None,
    }))
}

impl TimedWork for Lloyd {
    fn run(&mut self, phase: usize) -> Result<()> {
        let random = Xoshiro256Plus::seed_from_u64(0);
        let means = KMeans::params_with(self.init.nrows(), random, L2Dist)
            .init_method(KMeansInit::Precomputed(self.init.clone()))
            .max_n_iterations(self.steps[phase])
            // It stops below this tolerance, so it never does.
            .tolerance(f32::MIN_POSITIVE)
            .n_runs(1);
        self.means = Some(means.fit(&self.points)?);
        Ok(())
    }

    fn answer(&self) -> Result<BTreeMap<&'static str, Vec<u8>>> {
        let means = self.means.as_ref().ok_or("no run")?;
        let centroids = means.centroids().iter();
        let labels = means.predict(&self.points);
        Ok(BTreeMap::from([
            (
                "centroids",
                centroids.flat_map(|c| c.to_le_bytes()).collect(),
            ),
            (
                "labels",
                labels
                    .iter()
                    .flat_map(|&l| (l as u32).to_le_bytes())
                    .collect(),
            ),
        ]))
    }
}
