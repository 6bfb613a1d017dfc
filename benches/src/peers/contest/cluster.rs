//! A step of Lloyd's loop, with the same points and the same first centroids.
//!
//! Tercet has int8 codes of the points, the peers the f32 values themselves. A step's time is that of a fit of 1 + s
//! steps less that of a fit of 1 step, divided by s. So work that a fit does once (copies, norms, a last assignment)
//! is not counted.

use super::data::{Data, SHAPES};
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::path::Path;
use std::time::Instant;
use tercet_core::cluster::{ClusterError, Lloyd, Points, Update, lloyd};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
use tercet_core::quant::calibrate::{RangeRule, Scheme};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;
use tercet_host::points::{self, Codes, Values};

/// Maximum relative difference of the true inertia of int8 centroids from that of a peer's.
const NEAR: f64 = 0.005;

pub(super) fn events(quick: bool, embeddings: Option<&Path>) -> Vec<Event> {
    let most = if quick { 20_000 } else { usize::MAX };
    let mut events: Vec<_> = SHAPES
        .into_iter()
        .map(|(n, dims, k)| {
            let n = n.min(most);
            Event::new(
                format!("k-means, {}×{dims} k={k}", short(n)),
                move |name, inputs| case(name, inputs, Data::mixture(n, dims, k), quick),
            )
        })
        .collect();
    if let Some(path) = embeddings.map(Path::to_owned) {
        events.push(Event::new(
            "k-means, 32K×256 embeddings k=256",
            move |name, inputs| {
                let data = Data::embeddings(&path, most);
                case(name, inputs, data.map_err(io::Error::other)?, quick)
            },
        ));
    }
    events
}

fn case(name: &str, mut inputs: Inputs, data: Data, quick: bool) -> io::Result<Case> {
    let (n, k, dims) = (data.values.len() / data.dims, data.k, data.dims);
    let seeds: Vec<u32> = data.seeds.iter().map(|&seed| seed as u32).collect();
    inputs.put("points", &data.values, &[n, dims])?;
    inputs.put("init", &data.start(), &[k, dims])?;
    inputs.put("seeds", &seeds, &[k])?;
    let steps = [1, if quick { 4 } else { 11 }];
    Ok(Case {
        name: name.into(),
        work: (n * dims * k) as f64,
        unit: "products",
        steps: Some(steps),
        pools: Pools::OneAndAll,
        inputs,
        options: json!({"steps": steps}),
        tercet: Box::new(Kmeans::new(data, steps)),
        rivals: vec![
            Rival::python("scikit-learn", "sklearn_", "kmeans"),
            Rival::python("faiss", "faiss_", "kmeans"),
            Rival::python("fastkmeans", "fastkmeans_", "kmeans"),
            Rival::python("torch", "torch_", "kmeans"),
            Rival::rust("linfa", "linfa", "kmeans"),
        ],
    })
}

/// The codes of points, and the memory to cluster them.
pub(super) struct Kmeans {
    pub(super) data: Data,
    pub(super) steps: [u32; 2],
    pub(super) codes: Codes,
    /// The first centroids.
    pub(super) start: Vec<i8>,
    pub(super) labels: Vec<u32>,
    distances: Vec<u32>,
    pub(super) centroids: Vec<i8>,
    norms: Vec<i32>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

impl Kmeans {
    /// Rounds points to the symmetric int8 grid of their largest magnitude.
    pub(super) fn new(data: Data, steps: [u32; 2]) -> Self {
        let (n, table) = (data.values.len() / data.dims, data.k * data.dims);
        let values = Values::F32(data.values.clone());
        let codes = points::Points::new(&data.name, n, data.dims, values)
            .and_then(|points| points.to_codes(RangeRule::AbsMax, Scheme::Symmetric))
            .unwrap_or_else(|error| panic!("{error}"));
        Self {
            start: data.gather(&codes.codes),
            steps,
            codes,
            labels: vec![0; n],
            distances: vec![0; n],
            centroids: vec![0; table],
            norms: vec![0; data.k],
            sums: vec![0; table],
            counts: vec![0; data.k],
            data,
        }
    }

    fn fit(&mut self, steps: u32) -> Result<f64, ClusterError> {
        let points = Points::new(&self.codes.codes, self.data.dims)?;
        let buffers = Buffers {
            labels: &mut self.labels,
            distances: &mut self.distances,
            centroids: &mut self.centroids,
            kept: &mut [],
            norms: &mut self.norms,
            sums: &mut self.sums,
            counts: &mut self.counts,
        };
        let options = Lloyd {
            max_iter: steps,
            tol_ppm: 0,
        };
        let start = Instant::now();
        let mut engine = Threads::default();
        let mut clusters = engine.clusters(points, self.data.k, Update::Mean, buffers)?;
        clusters.set_centroids(&self.start)?;
        let outcome = lloyd(&mut clusters, &options, &mut |_, _| ())?;
        let seconds = start.elapsed().as_secs_f64();
        let taken = outcome.iterations;
        assert_eq!(taken, steps, "Tercet converged: time fewer steps");
        Ok(seconds)
    }

    /// Returns the values of the centroids.
    fn values(&self) -> Vec<f32> {
        let codes = self.centroids.iter();
        codes.map(|&code| self.codes.grid.value(code)).collect()
    }

    /// Returns Σ‖x − c‖² of the f32 points and the centroids of their labels, in f64.
    fn inertia(&self, centroids: &[f32], labels: &[u32]) -> f64 {
        let dims = self.data.dims;
        let points = self.data.values.chunks(dims).zip(labels);
        let distances = points.map(|(point, &label)| {
            let centroid = &centroids[label as usize * dims..][..dims];
            let pairs = point.iter().zip(centroid);
            pairs
                .map(|(x, c)| (f64::from(*x) - f64::from(*c)).powi(2))
                .sum::<f64>()
        });
        distances.sum()
    }
}

impl TimedWork for Kmeans {
    fn run(&mut self, phase: usize) -> f64 {
        let done = self.fit(self.steps[phase]);
        done.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Native for Kmeans {
    fn answer(&self) -> Answer {
        let labels: Vec<u8> = self.labels.iter().flat_map(|x| x.to_le_bytes()).collect();
        Answer::of_floats("centroids", &self.values()).and("labels", &labels)
    }
}

impl Subject for Kmeans {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let (centroids, labels) = (answer.f32("centroids"), answer.u32("labels"));
        if centroids.len() != self.centroids.len() || labels.len() != self.labels.len() {
            return Err("of other sizes".into());
        }
        let theirs = self.inertia(&centroids, &labels);
        let ratio = self.inertia(&self.values(), &self.labels) / theirs;
        match (ratio - 1.0).abs() <= NEAR {
            true => Ok(format!("inertia {ratio:.5} of its")),
            false => Err(format!("inertia {ratio:.5} of its")),
        }
    }
}
