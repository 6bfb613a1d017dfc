//! The handles and their operations.

use std::sync::Arc;

use tercet_core::cluster::{Points, check_nearest};
use tercet_core::engine::{ClusterEngine, LinearEngine, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans};
use tercet_host::engine::EngineError;

use super::{DeviceCopy, Residency};
use crate::AnyEngine;
use crate::dispatch::calls::kmeans_job;
use crate::dispatch::engine::Device;
use crate::dispatch::notice::Failure;
use crate::dispatch::{DispatchError, Dispatcher, Engine, First, Job};

/// Points for repeated calls, from [`Dispatcher::resident_points`]: on the host, and on the device too if that pays
/// off.
///
/// The handle borrows the host's data and has the dispatcher's operations. The data is copied to the device once, and
/// stays there as long as the handle and its clones live. It is copied:
///
/// - with the first call for which the device is chosen even though the data must be copied;
/// - once the calls so far would have saved as much time on the device as the copy takes;
/// - on request ([`ResidentPoints::load`]), or when a handle of the device ([`ResidentPoints::on`]) is called.
///
/// From then on the choice counts only the copies of each call: centroids, labels, distances. Any engine may still do a
/// call, with the same bits; if the device fails, the next engine uses the host's data. If the device has no room for
/// the data, it stays on the host until the next request, and this is reported once ([`Notice::Failed`]).
/// [`ResidentRows`] and [`ResidentLayer`] work in the same way.
///
/// ```
/// use tercet_core::cluster::Points;
/// use tercet_gpu::dispatch::{Dispatcher, Settings};
///
/// let dispatcher = Dispatcher::new(Settings::default());
/// let codes = [0, 1, 2, 50, 51, 52];
/// let points = dispatcher.resident_points(Points::new(&codes, 1)?);
/// let (mut labels, mut distances) = ([0; 6], [0; 6]);
/// for centroids in [[0, 50], [2, 52]] {
///     points.assign(&centroids, &mut labels, &mut distances)?;
///     assert_eq!(labels, [0, 0, 0, 1, 1, 1]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Notice::Failed`]: crate::dispatch::Notice::Failed
#[derive(Debug)]
pub struct ResidentPoints<'a, D: Device = First> {
    dispatcher: Dispatcher<D>,
    points: Points<'a>,
    held: Arc<DeviceCopy<<D as Residency>::Points>>,
}

/// Rows for repeated searches, from [`Dispatcher::resident_rows`]: on the host, and on the device too if that pays off,
/// as for [`ResidentPoints`].
#[derive(Debug)]
pub struct ResidentRows<R, D: Device = First> {
    dispatcher: Dispatcher<D>,
    rows: R,
    held: Arc<DeviceCopy<<D as Residency>::Rows>>,
}

/// A layer for repeated products, from [`Dispatcher::resident_layer`]: on the host, and on the device too if that pays
/// off, as for [`ResidentPoints`].
#[derive(Debug)]
pub struct ResidentLayer<'a, D: Device = First> {
    dispatcher: Dispatcher<D>,
    layer: Layer<'a>,
    held: Arc<DeviceCopy<<D as Residency>::Layer>>,
}

impl<D: Device> Dispatcher<D> {
    /// Returns a handle of points to cluster and to assign more than once. Nothing is copied before that pays off.
    pub fn resident_points<'a>(&self, points: Points<'a>) -> ResidentPoints<'a, D> {
        ResidentPoints {
            dispatcher: self.clone(),
            points,
            held: Arc::new(DeviceCopy::new()),
        }
    }

    /// Returns a handle of rows to search more than once. Nothing is copied before that pays off.
    pub fn resident_rows<R: Rows>(&self, rows: R) -> ResidentRows<R, D> {
        ResidentRows {
            dispatcher: self.clone(),
            rows,
            held: Arc::new(DeviceCopy::new()),
        }
    }

    /// Returns a handle of a layer to multiply more than once. Nothing is copied before that pays off.
    pub fn resident_layer<'a>(&self, layer: Layer<'a>) -> ResidentLayer<'a, D> {
        ResidentLayer {
            dispatcher: self.clone(),
            layer,
            held: Arc::new(DeviceCopy::new()),
        }
    }

    /// Opens the device and copies data to it now.
    fn load<T>(
        &self,
        held: &DeviceCopy<T>,
        mut load: impl FnMut(&mut D) -> Result<T, EngineError>,
    ) -> Result<(), DispatchError> {
        self.open()?;
        let loaded = self.with_device(|device| held.load(device, &mut load).map(|_| ()));
        let Some(Err(fault)) = loaded else {
            return Ok(());
        };
        Err(match Failure::from(fault) {
            Failure::Refused(refused) => DispatchError::Refused(refused),
            Failure::Engine { source, .. } => DispatchError::Engine {
                engine: Engine::Cuda,
                source,
            },
        })
    }
}

/// The methods that all handles have, with the same docs.
macro_rules! handle {
    ($kind:ident < $($parameter:tt),* > $(where $rows:ident: Rows)?, $field:ident, $hold:ident, $bytes:expr) => {
        impl<$($parameter,)* D: Device> $kind<$($parameter,)* D> $(where $rows: Rows)? {
            /// Returns a handle of the same data whose calls all run on one engine, as [`Dispatcher::on`] does.
            pub fn on(&self, engine: Engine) -> Self {
                Self {
                    dispatcher: self.dispatcher.on(engine),
                    held: Arc::clone(&self.held),
                    ..*self
                }
            }

            /// Opens the device, unless it is open, and copies the data to it now, unless it is there.
            ///
            /// # Errors
            /// [`DispatchError::Unavailable`] without a device; [`DispatchError::Engine`] if it has no room or fails.
            pub fn load(&self) -> Result<(), DispatchError> {
                self.dispatcher.load(&self.held, |device| device.$hold(&self.$field))
            }

            /// True if the data is on the device.
            pub fn is_resident(&self) -> bool {
                self.held.is_there()
            }

            /// Frees the device's memory. The data stays on the host, and may be copied again.
            pub fn release(&self) {
                self.held.release();
            }

            /// Returns the bytes of the data that need no copy once it is on the device.
            fn bytes(&self) -> usize {
                let bytes: fn(&Self) -> usize = $bytes;
                bytes(self)
            }
        }

        impl<$($parameter,)* D: Device> Clone for $kind<$($parameter,)* D> $(where $rows: Rows)? {
            fn clone(&self) -> Self {
                Self {
                    dispatcher: self.dispatcher.clone(),
                    held: Arc::clone(&self.held),
                    ..*self
                }
            }
        }
    };
}

handle!(ResidentPoints<'a>, points, hold_points, |it| it
    .points
    .values()
    .len());
handle!(ResidentRows<R> where R: Rows, rows, hold_rows, |it| {
    it.rows.len() * it.rows.dim() * size_of::<R::Query>()
});
handle!(ResidentLayer<'a>, layer, hold_layer, |it| it
    .layer
    .weights()
    .bytes()
    .len());

impl<D: Device> ResidentPoints<'_, D> {
    /// As [`Dispatcher::kmeans`], for these points and their weights.
    ///
    /// # Errors
    /// Those of [`Dispatcher::kmeans`].
    pub fn kmeans(&self, options: &KmeansOptions) -> Result<Clustering, DispatchError> {
        let points = &self.points;
        let (codes, dims, weights) = (points.values(), points.dims(), points.weights());
        let job = kmeans_job(codes.len(), dims, options);
        self.held.run(
            &self.dispatcher,
            job,
            // Each pass reads the points again, which counts as bytes read, but none of it is copied.
            usize::try_from(job.bytes_in).unwrap_or(usize::MAX),
            |device| device.hold_points(points),
            |engine, there| match (engine, there) {
                (AnyEngine::Device(device), Some(there)) => {
                    device.kmeans_held(points, there, options)
                }
                (engine, _) => kmeans(engine, codes, dims, weights, options, &mut |_| ()),
            },
        )
    }

    /// As [`Dispatcher::assign`], for these points.
    ///
    /// # Errors
    /// Those of [`Dispatcher::assign`].
    pub fn assign(
        &self,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), DispatchError> {
        let points = &self.points;
        self.held.run(
            &self.dispatcher,
            Job::assign(points, centroids.len() / points.dims()),
            self.bytes(),
            |device| device.hold_points(points),
            |engine, there| match (engine, there) {
                (AnyEngine::Device(device), Some(there)) => {
                    check_nearest(points, centroids, labels.len(), distances.len())?;
                    device.assign_held(points, there, centroids, labels, distances)
                }
                (engine, _) => engine.nearest(*points, centroids, labels, distances),
            },
        )
    }
}

impl<R: Rows, D: Device> ResidentRows<R, D> {
    /// As [`Dispatcher::search`], in these rows.
    ///
    /// # Errors
    /// Those of [`Dispatcher::search`].
    pub fn search<M: Metric>(
        &self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, DispatchError> {
        let rows = self.rows;
        let many = queries.len() / rows.dim().max(1);
        self.held.run(
            &self.dispatcher,
            Job::search(&rows, many, k),
            self.bytes(),
            |device| device.hold_rows(&rows),
            |engine, there| match (engine, there) {
                (AnyEngine::Device(device), Some(there)) => {
                    device.search_held::<M, R>(rows, there, queries, k, hits)
                }
                (engine, _) => engine.base(rows)?.top_k_all::<M>(queries, k, hits),
            },
        )
    }
}

impl<D: Device> ResidentLayer<'_, D> {
    /// As [`Dispatcher::matvec`], for this layer.
    ///
    /// # Errors
    /// Those of [`Dispatcher::matvec`].
    pub fn matvec(&self, x: I8Sym<'_>, x_scale: f32, out: &mut [f32]) -> Result<(), DispatchError> {
        self.multiply(x, &[x_scale], out, true)
    }

    /// As [`Dispatcher::matmul`], for this layer.
    ///
    /// # Errors
    /// Those of [`Dispatcher::matmul`].
    pub fn matmul(
        &self,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.multiply(x, x_scales, out, false)
    }

    /// `one`: true if there is one row of activations by definition.
    fn multiply(
        &self,
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
        one: bool,
    ) -> Result<(), DispatchError> {
        let layer = &self.layer;
        self.held.run(
            &self.dispatcher,
            Job::product(layer, scales.len()),
            self.bytes(),
            |device| device.hold_layer(layer),
            |engine, there| match (engine, there) {
                (AnyEngine::Device(device), Some(there)) => {
                    check(layer, x, scales, out.len(), one)?;
                    device.multiply_held(layer, there, x, scales, out)
                }
                (engine, _) => {
                    let mut scratch = vec![0; engine.product_scratch_len(layer.weights())];
                    match scales {
                        &[scale] if one => engine.matvec(layer, x, scale, out, &mut scratch),
                        _ => engine.matmat(layer, x, scales, out, &mut scratch),
                    }
                }
            },
        )
    }
}

/// Checks the conditions of every engine: whole rows of activations, a scale for each, and an output for each row of
/// activations and of weights.
fn check(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    scales: &[f32],
    outputs: usize,
    one: bool,
) -> Result<(), LinearError> {
    if one {
        return layer.check(x, outputs);
    }
    let expected = layer.check_many(x, outputs)?;
    let found = scales.len();
    if expected != found {
        return Err(LinearError::Length { expected, found });
    }
    Ok(())
}
