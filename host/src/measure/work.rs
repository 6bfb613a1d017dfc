//! The minimum work of an operation.

use serde::Serialize;

use super::bandwidth::Traffic;
use super::contender::Contender;
use crate::simd::Backend;

/// The bytes and products that any implementation of an operation needs.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastWork {
    /// Values in the input.
    pub values: usize,
    /// Bytes of input and output together: the working set.
    pub set: usize,
    /// The necessary passes over memory, one after another.
    pub passes: Vec<Pass>,
    /// Multiply-adds; 0 for other kinds of work.
    pub products: u64,
    /// The type of the products.
    pub arithmetic: Arithmetic,
    /// Number of equal steps in a run, by which its time is divided; the other fields are for one step.
    pub steps: u32,
    /// True if engines share it among their threads.
    pub shared: bool,
    /// True if contenders choose the instruction set; otherwise it is that of [`Backend::default`] for every contender.
    pub any_backend: bool,
}

/// A pass over memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// The mix of reading and writing.
    pub traffic: Traffic,
    /// Bytes read and written.
    pub bytes: usize,
}

/// The type of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// f32 × f32.
    F32,
    /// int8 × int8.
    Int8,
    /// −1, 0, 1 × int8.
    Ternary,
}

/// The ceiling that limits an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Bytes.
    Memory,
    /// Multiply-adds.
    Arithmetic,
}

impl Bound {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Arithmetic => "arithmetic",
        }
    }
}

impl LeastWork {
    /// Returns one pass over `bytes`, which are also the working set, without multiply-adds.
    pub fn pass(values: usize, traffic: Traffic, bytes: usize) -> Self {
        Self {
            values,
            set: bytes,
            passes: vec![Pass { traffic, bytes }],
            products: 0,
            arithmetic: Arithmetic::Int8,
            steps: 1,
            shared: true,
            any_backend: true,
        }
    }

    /// Adds a pass before it that only reads `bytes`.
    #[must_use]
    pub fn after_reading(mut self, bytes: usize) -> Self {
        let traffic = Traffic::Read;
        self.passes.insert(0, Pass { traffic, bytes });
        self
    }

    /// Adds multiply-adds.
    #[must_use]
    pub fn with_products(mut self, products: u64, arithmetic: Arithmetic) -> Self {
        (self.products, self.arithmetic) = (products, arithmetic);
        self
    }

    /// Marks it as done on the calling thread.
    #[must_use]
    pub fn on_one_thread(mut self) -> Self {
        self.shared = false;
        self
    }

    /// Marks the instruction set as that of the process: results of engines with another one would be misleading.
    #[must_use]
    pub fn by_chosen_backend(mut self) -> Self {
        self.any_backend = false;
        self
    }

    /// True if it is meaningful for a contender: its instruction set and, if it has several, its threads take part.
    pub fn is_for(&self, by: Contender) -> bool {
        let threads = self.shared || by.threads() == 1;
        let backend =
            self.any_backend || by == Contender::Scalar || by.backend() == Backend::default();
        threads && backend
    }

    /// Returns the bytes of all passes.
    pub fn bytes(&self) -> usize {
        self.passes.iter().map(|pass| pass.bytes).sum()
    }
}
