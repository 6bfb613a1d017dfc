//! The ten rows of largest dot product with one query, over int8 rows that are on the device.

use super::super::search::{Of, Search, TOP, search};
use super::super::{Case, Event, Inputs, Pools, Rival, Subject, TimedWork};
use super::{Copy, Device, PROCESSOR, expect};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Dot, Hit, Int8Rows, Metric};
use tercet_gpu::engine::CudaError;
use tercet_host::measure::short;

type Hits = Vec<Hit<<Dot as Metric>::Integer>>;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let (rows, dim) = if quick { (5000, 64) } else { (10_000_000, 256) };
    let name = format!("top {TOP} dot of int8, {}×{dim}", short(rows));
    vec![Event::new(name, move |name, inputs| {
        case(name, inputs, rows, dim)
    })]
}

fn case(name: &str, mut inputs: Inputs, rows: usize, dim: usize) -> io::Result<Case> {
    let data = search(&mut inputs, rows, dim)?;
    let tercet = OnDevice {
        device: Searcher::start(data.clone())?,
        host: Of::new(data.clone()),
    };
    Ok(Case {
        name: name.into(),
        work: (rows * dim) as f64,
        unit: "products",
        steps: None,
        pools: Pools::All,
        inputs,
        options: json!({"top": TOP}),
        tercet: Box::new(tercet),
        rivals: vec![
            Rival::python("torch, int8", "torch_cuda_", "search"),
            Rival::Native {
                label: PROCESSOR,
                work: Box::new(Of::<Dot>::new(data)),
            },
            Copy::rival(rows * dim, None)?,
        ],
    })
}

struct OnDevice {
    device: Searcher,
    /// The memory for hits.
    host: Of<Dot>,
}

impl TimedWork for OnDevice {
    fn run(&mut self, _: usize) -> f64 {
        let (seconds, hits) = self.device.search();
        self.host.hits = hits;
        seconds
    }
}

impl Subject for OnDevice {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        self.host.check(answer)
    }
}

/// A thread that has the rows on the device, because the search borrows both the engine and the rows.
struct Searcher {
    /// `None` only when the thread must end.
    wishes: Option<Sender<()>>,
    found: Receiver<Result<(f64, Hits), CudaError>>,
    thread: Option<JoinHandle<()>>,
}

impl Searcher {
    /// Returns when the rows are on the device.
    fn start(data: Search) -> io::Result<Self> {
        let mut device = Device::first()?;
        let (wishes, wished) = channel();
        let (finds, found) = channel();
        let thread = thread::spawn(move || {
            let searched = (|| {
                let rows = Int8Rows::new(&data.values, data.dim)?;
                let Device { cuda, watch } = &mut device;
                let mut base = cuda.base(rows)?;
                // One search before any request: its result shows that the rows are on the device.
                for () in std::iter::once(()).chain(wished.iter()) {
                    let mut hits = vec![Hit::default(); TOP];
                    let (milliseconds, _) =
                        watch.time(|| base.top_k::<Dot>(&data.query, &mut hits))?;
                    if finds
                        .send(Ok((f64::from(milliseconds) / 1e3, hits)))
                        .is_err()
                    {
                        break;
                    }
                }
                Ok(())
            })();
            if let Err(error) = searched {
                // If this fails too, nobody listens any more.
                let _ = finds.send(Err(error));
            }
        });
        let searcher = Self {
            wishes: Some(wishes),
            found,
            thread: Some(thread),
        };
        match searcher.next() {
            Ok(_) => Ok(searcher),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn next(&self) -> Result<(f64, Hits), CudaError> {
        self.found
            .recv()
            .expect("it answers each wish, or says why not")
    }

    fn search(&self) -> (f64, Hits) {
        let wishes = self.wishes.as_ref().expect("it has not ended");
        wishes.send(()).expect("it waits for wishes");
        expect(self.next())
    }
}

impl Drop for Searcher {
    /// Returns after the thread has freed its memory on the device.
    fn drop(&mut self) {
        self.wishes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
