//! The costs of every operation on every engine: measured ones, or built-in ones until something was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tercet_host::simd::Backend;

use super::{Cost, Engine, Operation};

/// A cost for each operation and engine; an engine without a cost is no candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Named", into = "Named")]
pub struct Costs {
    table: Box<[[Option<Cost>; Engine::ALL.len()]; Operation::ALL.len()]>,
}

/// The form in files. A file of another version may contain names that are unknown here.
type Named = BTreeMap<String, BTreeMap<String, Cost>>;

impl Costs {
    /// Returns a table without costs.
    pub fn none() -> Self {
        Self {
            table: Box::default(),
        }
    }

    /// Returns the costs that apply before the first tuning, for `threads` threads.
    ///
    /// These are rough figures for current machines: a core of 3 GHz and a device behind PCIe 4. They choose vectors
    /// from some ten elements on, threads from about a hundred thousand, and the device if it does much work per copied
    /// byte or if the data is already there.
    pub fn builtin(threads: usize) -> Self {
        let mut costs = Self::none();
        let threads = threads.max(1) as f64;
        for operation in Operation::ALL {
            let rough = Rough::of(operation);
            let vector = Cost::constant(2e-7, rough.bandwidth, rough.rate);
            let scalar = Cost::constant(1e-7, rough.bandwidth / 8.0, rough.rate / 16.0);
            // All threads share the memory: its bandwidth is enough for about four of them.
            let many = Cost::constant(
                2.5e-5,
                rough.bandwidth * threads.min(4.0),
                rough.rate * threads,
            );
            let device = Cost::constant(rough.launch, 5e11, rough.rate * 500.0);
            costs.set(operation, Engine::Scalar, scalar);
            costs.set(operation, Engine::Simd, vector);
            if threads > 1.0 {
                costs.set(operation, Engine::Threads, many);
            }
            costs.set(operation, Engine::Cuda, device.with_transfer(1e10));
        }
        costs
    }

    /// Returns the cost of an operation on an engine.
    pub const fn get(&self, operation: Operation, engine: Engine) -> Option<&Cost> {
        self.table[operation as usize][engine as usize].as_ref()
    }

    /// Sets a cost.
    pub fn set(&mut self, operation: Operation, engine: Engine, cost: Cost) {
        self.table[operation as usize][engine as usize] = Some(cost);
    }

    /// Returns the costs with `backend` on `threads` threads, if these are those of another instruction set.
    ///
    /// Scalar code takes the scalar engine's time, which threads share after their own start. Of any other set nothing
    /// is known: the built-in costs apply.
    pub(super) fn with_backend(&self, backend: Backend, threads: usize) -> Self {
        let mut costs = self.clone();
        if backend != Backend::SCALAR {
            for engine in [Engine::Simd, Engine::Threads] {
                costs.remove(engine);
                costs.fill(engine, &Self::builtin(threads));
            }
            return costs;
        }
        for operation in Operation::ALL {
            let alone = self.get(operation, Engine::Scalar);
            let together = self.get(operation, Engine::Threads);
            let Some(alone) = alone else { continue };
            costs.set(operation, Engine::Simd, alone.clone());
            if let Some(together) = together {
                let shared = alone.shared(together.launch, threads);
                costs.set(operation, Engine::Threads, shared);
            }
        }
        costs
    }

    /// Removes all costs of an engine.
    pub fn remove(&mut self, engine: Engine) {
        for row in self.table.iter_mut() {
            row[engine as usize] = None;
        }
    }

    /// Copies from `others` the costs of an engine that are missing here.
    pub fn fill(&mut self, engine: Engine, others: &Self) {
        for (row, other) in self.table.iter_mut().zip(others.table.iter()) {
            let index = engine as usize;
            if row[index].is_none() {
                row[index].clone_from(&other[index]);
            }
        }
    }

    /// Iterates over every operation, engine and cost.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, Engine, &Cost)> {
        let all = Operation::ALL.into_iter();
        all.flat_map(move |operation| {
            let engines = Engine::ALL.into_iter();
            engines
                .filter_map(move |engine| Some((operation, engine, self.get(operation, engine)?)))
        })
    }
}

/// Speed of one core.
struct Rough {
    /// Bytes per second.
    bandwidth: f64,
    /// Work per second.
    rate: f64,
    /// Seconds until a device has started and reported the end.
    launch: f64,
}

impl Rough {
    const fn of(operation: Operation) -> Self {
        let (bandwidth, rate, launch) = match operation {
            Operation::QuantizeInteger | Operation::QuantizeTernary => (8e9, 2e9, 6e-5),
            Operation::QuantizeOptimal => (1e9, 2.5e8, 3e-4),
            // A device clears its counters before, and they are read back after.
            Operation::Histogram => (8e9, 2e9, 2e-4),
            Operation::Dequantize | Operation::Decode => (1e10, 3e9, 5e-5),
            Operation::Encode => (6e9, 1.5e9, 6e-5),
            // Each step is its own call.
            Operation::Kmeans => (1e10, 4e10, 1e-3),
            Operation::Assign => (1e10, 4e10, 1e-4),
            Operation::Search => (1e10, 5e10, 2e-4),
            Operation::Matvec => (1e10, 2e10, 8e-5),
            Operation::Matmul => (1e10, 1e11, 8e-5),
        };
        Self {
            bandwidth,
            rate,
            launch,
        }
    }
}

impl TryFrom<Named> for Costs {
    type Error = String;

    fn try_from(named: Named) -> Result<Self, String> {
        let mut costs = Self::none();
        for (operation, engines) in named {
            let known = Operation::from_name(&operation);
            let operation = known.ok_or_else(|| format!("no operation is called {operation}"))?;
            for (engine, cost) in engines {
                let known = Engine::from_name(&engine);
                let engine = known.ok_or_else(|| format!("no engine is called {engine}"))?;
                costs.set(operation, engine, cost);
            }
        }
        Ok(costs)
    }
}

impl From<Costs> for Named {
    fn from(costs: Costs) -> Self {
        let mut named = Self::new();
        for (operation, engine, cost) in costs.iter() {
            let engines = named.entry(operation.name().to_owned()).or_default();
            engines.insert(engine.name().to_owned(), cost.clone());
        }
        named
    }
}
