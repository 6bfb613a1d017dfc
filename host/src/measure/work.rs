//! What an operation must do at least.

use serde::Serialize;

use super::bandwidth::Traffic;
use super::contender::Contender;
use crate::simd::Backend;

/// What any implementation of an operation must move and multiply.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Values in the input.
    pub values: usize,
    /// Bytes of input and output together: the working set.
    pub set: usize,
    /// What passes over memory there must be, one after another.
    pub passes: Vec<Pass>,
    /// Multiply-adds; 0 where the work is of another kind.
    pub products: u64,
    /// What is multiplied.
    pub arithmetic: Arithmetic,
    /// Equal steps in a run, whose time is divided by it; the other fields are of one step.
    pub steps: u32,
    /// Whether engines share it over their threads.
    pub shared: bool,
    /// Whether contenders choose the instruction set; else it is that of [`Backend::default`], whoever runs it.
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

/// What is multiplied.
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

/// What holds an operation back at the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Bytes.
    Memory,
    /// Multiply-adds.
    Arithmetic,
}

impl Bound {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Arithmetic => "arithmetic",
        }
    }
}

impl Work {
    /// One pass over `bytes`, which are the working set too, and no multiply-adds.
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

    /// A pass that only reads `bytes` goes before.
    #[must_use]
    pub fn after_reading(mut self, bytes: usize) -> Self {
        let traffic = Traffic::Read;
        self.passes.insert(0, Pass { traffic, bytes });
        self
    }

    /// There are multiply-adds too.
    #[must_use]
    pub fn with_products(mut self, products: u64, arithmetic: Arithmetic) -> Self {
        (self.products, self.arithmetic) = (products, arithmetic);
        self
    }

    /// Engines do it on the thread that calls.
    #[must_use]
    pub fn on_one_thread(mut self) -> Self {
        self.shared = false;
        self
    }

    /// The instruction set is the process's, so that engines with another would say what is not so.
    #[must_use]
    pub fn by_chosen_backend(mut self) -> Self {
        self.any_backend = false;
        self
    }

    /// Whether it says something about a contender: that his threads, if several, and his instruction set take part.
    pub fn is_for(&self, by: Contender) -> bool {
        let threads = self.shared || by.threads() == 1;
        let backend =
            self.any_backend || by == Contender::Scalar || by.backend() == Backend::default();
        threads && backend
    }

    /// Bytes of all passes.
    pub fn bytes(&self) -> usize {
        self.passes.iter().map(|pass| pass.bytes).sum()
    }
}
