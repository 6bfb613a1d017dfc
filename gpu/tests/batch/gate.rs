//! Executor that tests hold up and look into.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tercet_gpu::batch::{BatchJob, Executor, Queue, Ticket};

/// Numbers, of kinds; the answer is the number and one.
pub(crate) struct Numbers;

impl BatchJob for Numbers {
    type Request = (u8, u64);
    type Answer = u64;
    type Error = String;
    type Kind = u8;

    fn kind(&(kind, _): &(u8, u64)) -> u8 {
        kind
    }
}

/// The batches that were run, in order.
pub(crate) type Log = Arc<Mutex<Vec<Vec<u64>>>>;

/// Executor whose batches begin when the test says so.
pub(crate) struct Gated {
    begun: Sender<()>,
    go: Receiver<()>,
    log: Log,
}

/// The test's side of it.
pub(crate) struct Gate {
    begun: Receiver<()>,
    go: Sender<()>,
    pub(crate) log: Log,
}

pub(crate) fn gated() -> (Gated, Gate) {
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    let log = Log::default();
    let work = Gated {
        begun,
        go: may_go,
        log: Arc::clone(&log),
    };
    let gate = Gate {
        begun: has_begun,
        go,
        log,
    };
    (work, gate)
}

impl Gate {
    /// Waits until a batch is under way, and holds it there.
    pub(crate) fn begun(&self) {
        self.begun.recv().unwrap();
    }

    /// Lets one batch go.
    pub(crate) fn go(&self) {
        self.go.send(()).unwrap();
    }

    /// Lets all batches go from now on.
    pub(crate) fn open(self) -> Log {
        self.log
    }
}

impl Executor<Numbers> for Gated {
    fn run(&mut self, _: &u8, requests: &[(u8, u64)]) -> Result<Vec<u64>, String> {
        let numbers = requests.iter().map(|request| request.1);
        self.log.lock().unwrap().push(numbers.clone().collect());
        // The test may be over, or have opened the gate.
        if self.begun.send(()).is_ok() {
            let _ = self.go.recv();
        }
        Ok(numbers.map(|number| number + 1).collect())
    }
}

/// Executor that does as told with the batch.
pub(crate) struct Told<F>(pub(crate) F);

impl<F: FnMut(&[u64]) -> Result<Vec<u64>, String> + Send> Executor<Numbers> for Told<F> {
    fn check(&self, &(_, number): &(u8, u64)) -> Result<(), String> {
        match number {
            BAD => Err("a bad number".to_owned()),
            WORSE => panic!("a worse number"),
            _ => Ok(()),
        }
    }

    fn run(&mut self, _: &u8, requests: &[(u8, u64)]) -> Result<Vec<u64>, String> {
        let numbers: Vec<u64> = requests.iter().map(|request| request.1).collect();
        (self.0)(&numbers)
    }

    fn splits(&self, error: &String) -> bool {
        error == "too many"
    }
}

/// Numbers that [`Told`] refuses, and panics at.
pub(crate) const BAD: u64 = 1_000_000;
pub(crate) const WORSE: u64 = 2_000_000;

pub(crate) fn plus_one(numbers: &[u64]) -> Result<Vec<u64>, String> {
    Ok(numbers.iter().map(|number| number + 1).collect())
}

pub(crate) fn ask(
    queue: &Queue<Numbers>,
    numbers: impl IntoIterator<Item = u64>,
) -> Vec<Ticket<Numbers>> {
    let submitted = numbers
        .into_iter()
        .map(|number| queue.try_submit((0, number)));
    submitted.map(Result::unwrap).collect()
}
