//! A step of Lloyd's loop over points that are on the device.

use super::super::cluster::Kmeans;
use super::super::data::Data;
use super::super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use super::{Copy, Device, PROCESSOR, expect};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use tercet_core::cluster::{Lloyd, Points, Update, lloyd};
use tercet_core::engine::ClusterProblem;
use tercet_gpu::engine::cluster::DevicePoints;
use tercet_gpu::engine::{CudaOptions, TensorCores};
use tercet_host::measure::short;

/// Points, coordinates and clusters.
const SHAPES: [(usize, usize, usize); 3] = [
    (1_000_000, 128, 1024),
    (10_000_000, 128, 4096),
    (100_000_000, 32, 64),
];

pub(super) fn events(quick: bool) -> Vec<Event> {
    let shapes: &[_] = if quick { &[(2000, 32, 16)] } else { &SHAPES };
    let events = shapes.iter().map(|&(n, dims, k)| {
        Event::new(
            format!("k-means, {}×{dims} k={k}", short(n)),
            move |name, inputs| case(name, inputs, Data::mixture(n, dims, k), quick),
        )
    });
    events.collect()
}

fn case(name: &str, mut inputs: Inputs, data: Data, quick: bool) -> io::Result<Case> {
    let (n, k, dims) = (data.values.len() / data.dims, data.k, data.dims);
    inputs.put("points", &data.values, &[n, dims])?;
    inputs.put("init", &data.start(), &[k, dims])?;
    let steps = [1, if quick { 3 } else { 6 }];
    // The codes are read, and a label and a distance per point are written.
    let copy = Copy::rival(n * (dims + 8), Some(steps))?;
    let tercet = OnDevice::new(Kmeans::new(data.clone(), steps), TensorCores::Auto)?;
    let by = |label, tensor_cores| -> io::Result<Rival> {
        let work = OnDevice::new(Kmeans::new(data.clone(), steps), tensor_cores)?;
        let work = Box::new(work);
        Ok(Rival::Native { label, work })
    };
    let (mma, wgmma) = (
        by("Tercet, mma", TensorCores::Mma)?,
        by("Tercet, wgmma", TensorCores::Wgmma)?,
    );
    Ok(Case {
        name: name.into(),
        work: (n * dims * k) as f64,
        unit: "products",
        steps: Some(steps),
        pools: Pools::All,
        inputs,
        options: json!({"steps": steps}),
        tercet: Box::new(tercet),
        rivals: vec![
            mma,
            wgmma,
            Rival::python("flash-kmeans", "flash_kmeans_", "kmeans"),
            Rival::python("flash-kmeans, f16", "flash_kmeans_", "kmeans_f16"),
            Rival::python("cuML", "cuml_", "kmeans"),
            Rival::python("torch", "torch_cuda_", "kmeans"),
            Rival::Native {
                label: PROCESSOR,
                work: Box::new(Kmeans::new(data, steps)),
            },
            copy,
        ],
    })
}

struct OnDevice {
    device: Device,
    points: DevicePoints,
    /// The points, and the memory that labels and centroids are copied to.
    host: Kmeans,
}

impl OnDevice {
    fn new(host: Kmeans, tensor_cores: TensorCores) -> io::Result<Self> {
        let mut device = Device::with(&CudaOptions {
            tensor_cores,
            ..CudaOptions::default()
        })?;
        let points = Points::new(&host.codes.codes, host.data.dims).map_err(io::Error::other)?;
        let points = device.cuda.points(&points).map_err(io::Error::other)?;
        Ok(Self {
            device,
            points,
            host,
        })
    }
}

impl TimedWork for OnDevice {
    fn run(&mut self, phase: usize) -> f64 {
        let Self {
            device,
            points,
            host,
        } = self;
        let Device { cuda, watch } = device;
        let mut clusters = expect(cuda.clusters_of(points, host.data.k, Update::Mean));
        expect(clusters.set_centroids(&host.start));
        let options = Lloyd {
            max_iter: host.steps[phase],
            tol_ppm: 0,
        };
        let timed = watch.time(|| lloyd(&mut clusters, &options, &mut |_, _| ()));
        let (milliseconds, outcome) = expect(timed);
        assert_eq!(
            outcome.iterations, options.max_iter,
            "Tercet converged: time fewer steps"
        );
        expect(clusters.read_labels(&mut host.labels));
        expect(clusters.read_centroids(&mut host.centroids));
        f64::from(milliseconds) / 1e3
    }
}

impl Native for OnDevice {
    fn answer(&self) -> Answer {
        self.host.answer()
    }
}

impl Subject for OnDevice {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        self.host.check(answer)
    }
}
