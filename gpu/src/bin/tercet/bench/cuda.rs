//! The CUDA device as a contender of `tercet bench`, with resident data and times from its own events.

mod values;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tercet_core::cluster::{Init, Points, Update, seed};
use tercet_core::engine::{ClusterProblem, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::number::Random;
use tercet_core::search::{Cosine, Dot, Hit, Metric, MetricKind, Rows, Score, SquaredL2};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions, DeviceInfo, TensorCores, Watch, Wgmma};
use tercet_host::measure::{Bits, Device, DeviceError, DeviceRun, Floats, Searched, Task};

/// Maximum number of timed runs of a task.
const MOST: usize = 1000;
/// Resolution of events: no shorter time is reported.
const RESOLUTION: f64 = 5e-7;

/// A device, and the copies measured on it.
#[derive(Debug)]
pub(super) struct OnCuda {
    cuda: Cuda,
    rates: HashMap<usize, f64>,
}

impl OnCuda {
    pub(super) fn new(cuda: Cuda) -> Self {
        Self {
            cuda,
            rates: HashMap::new(),
        }
    }
}

impl Device for OnCuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn run(&mut self, task: &Task<'_>, budget: Duration) -> Result<DeviceRun, DeviceError> {
        timed(&mut self.cuda, task, budget)
    }

    /// Runs steps of k-means with warpgroup products, if the device has them: by themselves engines use them only for
    /// many clusters.
    fn run_otherwise(
        &mut self,
        task: &Task<'_>,
        budget: Duration,
    ) -> Option<(&'static str, Result<DeviceRun, DeviceError>)> {
        let has = |info: DeviceInfo| info.wgmma != Wgmma::Absent;
        let steps = matches!(task, Task::Lloyd { dims, .. } if *dims <= TensorCores::WGMMA_DIMS);
        if !steps || !self.cuda.device_info().is_ok_and(has) {
            return None;
        }
        Some(("cuda wgmma", by_wgmma(task, budget)))
    }

    fn copy_rate(&mut self, set: usize, budget: Duration) -> Result<f64, DeviceError> {
        if let Some(&rate) = self.rates.get(&set) {
            return Ok(rate);
        }
        let rate = copied(&mut self.cuda, set, budget).map_err(told)?;
        self.rates.insert(set, rate);
        Ok(rate)
    }

    fn transfer_rates(&mut self, bytes: usize, budget: Duration) -> Result<[f64; 2], DeviceError> {
        transferred(&mut self.cuda, bytes, budget).map_err(told)
    }
}

fn timed(cuda: &mut Cuda, task: &Task<'_>, budget: Duration) -> Result<DeviceRun, DeviceError> {
    let mut clock = Clock {
        watch: cuda.watch().map_err(told)?,
        budget,
        seconds: Vec::new(),
    };
    let bits = done(cuda, &mut clock, task).map_err(told)?;
    match (bits, clock.seconds.is_empty()) {
        (Some(bits), false) => Ok(DeviceRun {
            bits,
            seconds: clock.seconds,
        }),
        _ => Err(DeviceError::NoKernel),
    }
}

/// Uses a separate engine on the same device. If its products differ from those of mma, it continues with mma: that is
/// a failure here.
fn by_wgmma(task: &Task<'_>, budget: Duration) -> Result<DeviceRun, DeviceError> {
    let options = CudaOptions {
        tensor_cores: TensorCores::Wgmma,
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).map_err(told)?;
    let run = timed(&mut cuda, task, budget)?;
    match cuda.device_info().map_err(told)?.wgmma {
        Wgmma::Right => Ok(run),
        Wgmma::Wrong => Err(DeviceError::Failed(
            "its products are not those of mma".to_owned(),
        )),
        // There was no room to try them.
        _ => Err(DeviceError::NoKernel),
    }
}

fn told(error: CudaError) -> DeviceError {
    match error {
        CudaError::NoKernel { .. } => DeviceError::NoKernel,
        error if error.is_out_of_memory() => DeviceError::NoRoom(error.to_string()),
        error => DeviceError::Failed(error.to_string()),
    }
}

/// Times the runs after the first.
struct Clock {
    watch: Watch,
    budget: Duration,
    seconds: Vec<f64>,
}

impl Clock {
    fn time(&mut self, mut work: impl FnMut() -> Result<(), CudaError>) -> Result<(), CudaError> {
        let begin = Instant::now();
        while self.seconds.is_empty()
            || (begin.elapsed() < self.budget && self.seconds.len() < MOST)
        {
            let (milliseconds, ()) = self.watch.time(&mut work)?;
            let seconds = f64::from(milliseconds) / 1e3;
            self.seconds.push(seconds.max(RESOLUTION));
        }
        Ok(())
    }
}

/// Returns the bytes per second, read and written, of the best copy of half of `set`.
fn copied(cuda: &mut Cuda, set: usize, budget: Duration) -> Result<f64, CudaError> {
    let words = (set / 8).max(1024);
    let (from, mut to) = (cuda.zeros::<u32>(words)?, cuda.zeros::<u32>(words)?);
    let mut clock = Clock {
        watch: cuda.watch()?,
        budget,
        seconds: Vec::new(),
    };
    cuda.copy(&from, &mut to)?;
    clock.time(|| cuda.copy(&from, &mut to))?;
    let best = clock.seconds.into_iter().fold(f64::INFINITY, f64::min);
    Ok((2 * 4 * words) as f64 / best)
}

/// Returns the bytes per second to the device and back, for memory that is not pinned.
fn transferred(cuda: &mut Cuda, bytes: usize, budget: Duration) -> Result<[f64; 2], CudaError> {
    let mut words: Vec<u32> = (0..bytes as u32 / 4).collect();
    let mut there = cuda.zeros::<u32>(words.len())?;
    let best = |work: &mut dyn FnMut() -> Result<(), CudaError>| -> Result<f64, CudaError> {
        // The first run allocates memory.
        work()?;
        let (begin, mut least) = (Instant::now(), f64::INFINITY);
        while least.is_infinite() || begin.elapsed() < budget {
            let start = Instant::now();
            work()?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(bytes as f64 / least)
    };
    let to = best(&mut || {
        cuda.write(&words, &mut there)?;
        cuda.synchronize()
    })?;
    let from = best(&mut || cuda.read(&there, &mut words))?;
    Ok([to, from])
}

/// Runs a task; returns the bits of its results, or `None` if there is no kernel for it.
fn done(cuda: &mut Cuda, clock: &mut Clock, task: &Task<'_>) -> Result<Option<u64>, CudaError> {
    Ok(Some(match task {
        Task::Quantize {
            values,
            groups,
            method,
        } => match values {
            Floats::F32(values) => values::quantize(cuda, clock, values, *groups, *method)?,
            Floats::F16(values) => values::quantize(cuda, clock, values, *groups, *method)?,
            Floats::Bf16(values) => values::quantize(cuda, clock, values, *groups, *method)?,
        },
        Task::NormQuantize { values, norm, bits } => match bits {
            8 => values::norm_quantize::<i8>(cuda, clock, values, *norm)?,
            _ => values::norm_quantize::<i16>(cuda, clock, values, *norm)?,
        },
        Task::Dequantize { codes } => values::dequantize(cuda, clock, codes)?,
        Task::Encode {
            values,
            format,
            rule,
        } => values::encode(cuda, clock, values, *format, *rule)?,
        Task::Decode {
            bytes,
            values,
            format,
        } => values::decode(cuda, clock, bytes, *values, *format)?,
        Task::Dot {
            bytes,
            x,
            x_scale,
            format,
        } => values::dot(cuda, clock, (bytes, *format), x, *x_scale)?,
        Task::Mean { values } => values::mean(cuda, clock, values)?,
        Task::Histogram { values } => values::histogram(cuda, clock, values)?,
        Task::QuantizeFp8 {
            values,
            format,
            scale,
        } => values::quantize_fp8(cuda, clock, values, (*format, *scale))?,
        Task::DequantizeFp8 {
            codes,
            format,
            scale,
        } => values::dequantize_fp8(cuda, clock, codes, (*format, *scale))?,
        Task::PaletteDecode { palette } => values::palette_decode(cuda, clock, palette)?,
        Task::PaletteMatVec {
            palette,
            x,
            x_scale,
        } => values::palette_matvec(cuda, clock, palette, (x, *x_scale))?,
        Task::Lloyd {
            points,
            dims,
            clusters,
            steps,
        } => cluster(
            cuda,
            clock,
            &Points::new(points, *dims)?,
            *clusters,
            |problem| {
                problem.set_centroids(&points[..clusters * dims])?;
                let mut inertia = 0;
                for _ in 0..*steps {
                    inertia = problem.assign_update()?.inertia;
                }
                Ok(inertia)
            },
        )?,
        Task::Nearest {
            points,
            dims,
            centroids,
        } => nearest(cuda, clock, &Points::new(points, *dims)?, centroids)?,
        Task::Seed {
            points,
            dims,
            clusters,
        } => cluster(
            cuda,
            clock,
            &Points::new(points, *dims)?,
            *clusters,
            |problem| {
                seed(problem, Init::PlusPlus, &mut Random::new(1))?;
                Ok(0)
            },
        )?,
        Task::Search { rows, metric, top } => match rows {
            Searched::Int8(rows, queries) => search(cuda, clock, *rows, queries, *metric, *top)?,
            Searched::Ternary(rows, queries) => search(cuda, clock, *rows, queries, *metric, *top)?,
            Searched::Float(rows, queries) => search(cuda, clock, *rows, queries, *metric, *top)?,
        },
        Task::Product { layer, x, scales } => product(cuda, clock, layer, x, scales)?,
        _ => return Ok(None),
    }))
}

/// Clusters resident points; `work` returns the final inertia.
fn cluster(
    cuda: &mut Cuda,
    clock: &mut Clock,
    points: &Points<'_>,
    k: usize,
    mut work: impl FnMut(&mut tercet_gpu::engine::cluster::DeviceClusters<'_>) -> Result<u64, CudaError>,
) -> Result<u64, CudaError> {
    let there = cuda.points(points)?;
    let mut problem = cuda.clusters_of(&there, k, Update::Mean)?;
    let inertia = work(&mut problem)?;
    clock.time(|| work(&mut problem).map(|_| ()))?;
    let (mut labels, mut centroids) = (vec![0; points.len()], vec![0; k * points.dims()]);
    problem.read_labels(&mut labels)?;
    problem.read_centroids(&mut centroids)?;
    let bits = Bits::default().with(&labels).with(&centroids);
    Ok(bits.with(&[inertia]).finish())
}

/// Assigns resident points to centroids that are copied to the device.
fn nearest(
    cuda: &mut Cuda,
    clock: &mut Clock,
    points: &Points<'_>,
    centroids: &[i8],
) -> Result<u64, CudaError> {
    let there = cuda.points(points)?;
    let k = centroids.len() / points.dims();
    let mut problem = cuda.clusters_of(&there, k, Update::Mean)?;
    let mut work = || {
        problem.set_centroids(centroids)?;
        problem.assign()
    };
    work()?;
    clock.time(|| work().map(|_| ()))?;
    let (mut labels, mut distances) = (vec![0; points.len()], vec![0; points.len()]);
    problem.read_labels(&mut labels)?;
    problem.read_distances(&mut distances)?;
    Ok(Bits::default().with(&labels).with(&distances).finish())
}

fn search<R: Rows>(
    cuda: &mut Cuda,
    clock: &mut Clock,
    rows: R,
    queries: &[R::Query],
    metric: MetricKind,
    top: usize,
) -> Result<u64, CudaError> {
    match metric {
        MetricKind::Dot => best::<Dot, R>(cuda, clock, rows, queries, top),
        MetricKind::Cosine => best::<Cosine, R>(cuda, clock, rows, queries, top),
        MetricKind::SquaredL2 => best::<SquaredL2, R>(cuda, clock, rows, queries, top),
    }
}

fn best<M: Metric, R: Rows>(
    cuda: &mut Cuda,
    clock: &mut Clock,
    rows: R,
    queries: &[R::Query],
    top: usize,
) -> Result<u64, CudaError> {
    let mut hits = vec![Hit::default(); queries.len() / rows.dim().max(1) * top];
    let mut base = cuda.base(rows)?;
    base.top_k_all::<M>(queries, top, &mut hits)?;
    clock.time(|| base.top_k_all::<M>(queries, top, &mut hits).map(|_| ()))?;
    let indices: Vec<usize> = hits.iter().map(|hit| hit.index).collect();
    let scores: Vec<f32> = hits.iter().map(|hit| hit.score.value()).collect();
    Ok(Bits::default().with(&indices).with_floats(&scores).finish())
}

fn product(
    cuda: &mut Cuda,
    clock: &mut Clock,
    layer: &Layer<'_>,
    x: &[i8],
    scales: &[f32],
) -> Result<u64, CudaError> {
    let there = cuda.layer(layer)?;
    let x = cuda.activations(&there, I8Sym::new(x)?)?;
    let mut y = vec![0.0; scales.len() * there.rows()];
    let scales = cuda.upload(scales)?;
    let mut out = cuda.zeros::<f32>(y.len())?;
    cuda.multiply(&there, &x, &scales, &mut out)?;
    clock.time(|| cuda.multiply(&there, &x, &scales, &mut out))?;
    cuda.read(&out, &mut y)?;
    Ok(Bits::default().with_floats(&y).finish())
}
