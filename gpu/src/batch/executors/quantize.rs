//! Rows of floats to quantize.

use std::fmt;
use std::marker::PhantomData;

use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::number::Element;
use tercet_core::quant::{self, Groups, Method, QuantError};
use tercet_host::engine::EngineError;

use super::CanAllocate;
use super::room::most;
use crate::batch::{BatchJob, Executor};

/// The job of quantizing rows of `T`, each with its own scale. Rows of one width are of one kind.
pub struct Quantizing<T>(PhantomData<fn() -> T>);

/// A quantized row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// One code per value.
    pub codes: Vec<i8>,
    /// The value of one step of the code above the zero point.
    pub scale: f32,
    /// The code of 0.
    pub zero_point: i8,
}

impl<T: Element> BatchJob for Quantizing<T> {
    type Request = Vec<T>;
    type Answer = Row;
    type Error = EngineError;
    type Kind = usize;

    fn kind(request: &Vec<T>) -> usize {
        request.len()
    }
}

/// [`Quantizing`] on an engine with one method: [`tercet_core::quant::quantize`] of a batch's rows as one tensor, with
/// a group per row.
///
/// ```
/// use tercet_core::quant::Method;
/// use tercet_core::scalar::Scalar;
/// use tercet_gpu::batch::executors::{QuantizeRows, Quantizing};
/// use tercet_gpu::batch::{BatchOptions, Queue, Worker};
///
/// let work = QuantizeRows::new(Scalar, Method::Symmetric { limit: 127 });
/// let queue = Queue::<Quantizing<f32>>::new(BatchOptions::default(), [Worker::new("scalar", work)])?;
/// let row = queue.submit(vec![254.0, -2.0])?.wait()?;
/// assert_eq!((row.codes, row.scale), (vec![127, -1], 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QuantizeRows<E> {
    engine: E,
    method: Method,
    bins: Vec<MagnitudeBin>,
}

impl<E> QuantizeRows<E> {
    /// Returns the work of an engine with a method.
    pub const fn new(engine: E, method: Method) -> Self {
        Self {
            engine,
            method,
            bins: Vec::new(),
        }
    }
}

impl<E> QuantizeRows<E> {
    pub(super) const fn method(&self) -> Method {
        self.method
    }
}

impl<T: Element, E: QuantizeEngine<Error: Into<EngineError>> + CanAllocate + Send>
    Executor<Quantizing<T>> for QuantizeRows<E>
{
    /// Checks that it has values, and all are finite.
    fn check(&self, request: &Vec<T>) -> Result<(), EngineError> {
        if request.is_empty() {
            return Err(QuantError::Empty.into());
        }
        match request.iter().position(|x| !x.to_f32().is_finite()) {
            Some(index) => {
                let index = index as u64;
                Err(QuantError::NotFinite { index }.into())
            }
            None => Ok(()),
        }
    }

    fn most(&self, &width: &usize, wanted: usize) -> usize {
        most(&self.engine, wanted, |count| {
            [count * width * size_of::<T>(), count * width, 5 * count]
        })
    }

    fn run(&mut self, &width: &usize, requests: &[Vec<T>]) -> Result<Vec<Row>, EngineError> {
        let count = requests.len();
        let groups = Groups::rows(count, width)?;
        let values = requests.concat();
        let mut codes = vec![0; values.len()];
        let (mut scales, mut zero_points) = (vec![0.0; count], vec![0; count]);
        self.bins
            .resize(self.method.scratch_len(width), MagnitudeBin::EMPTY);
        let out = Output {
            codes: &mut codes,
            scales: &mut scales,
            zero_points: &mut zero_points,
        };
        let tensor = self.engine.tensor(&values, groups, out);
        let mut tensor = tensor.map_err(Into::into)?;
        quant::quantize(&mut tensor, self.method, &mut self.bins).map_err(Into::into)?;
        tensor.finish().map_err(Into::into)?;
        let rows = codes.chunks_exact(width).zip(scales).zip(zero_points);
        Ok(rows
            .map(|((codes, scale), zero_point)| Row {
                codes: codes.to_vec(),
                scale,
                zero_point,
            })
            .collect())
    }

    fn splits(&self, error: &EngineError) -> bool {
        matches!(error, EngineError::NoRoom(_))
    }
}

impl<E: fmt::Debug> fmt::Debug for QuantizeRows<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuantizeRows")
            .field("engine", &self.engine)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
