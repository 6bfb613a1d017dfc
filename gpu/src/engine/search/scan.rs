//! Finds the rows that may be wanted from keys: a bar, a scan, a selection.

use super::room::{Packed, Places, SearchMemory};
use super::spans::rows_of;
use crate::engine::device::{Cuda, bytes_of_mut};
use crate::engine::error::CudaError;
use crate::engine::launch::{Argument, LaunchGrid};
use crate::engine::memory::DeviceBuffer;

/// Minimum and maximum number of rows whose keys determine a bar.
const LEAST_SAMPLE: usize = 1 << 12;
const MOST_SAMPLE: usize = 1 << 16;
/// Maximum number of rows above the bar that are kept.
const CAPACITY: usize = 1 << 16;
/// Minimum number of rows that are copied back after selection; for a search by threshold.
const LEAST_RESULTS: usize = 64;
const MOST_RESULTS: usize = 4096;
/// Threads of a block that selects.
const THREADS: u32 = 1024;

/// The wanted rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The given number of best rows, and those whose keys are lower by at most the slack.
    Best(usize, u32),
    /// The rows with this key or a larger one.
    Reaching(u32),
}

impl Wanted {
    /// Returns the arguments for selections: the number of rows, with 0 for all, and the slack.
    const fn arguments<'a>(self) -> [Argument<'a>; 2] {
        match self {
            Self::Best(k, slack) => [Argument::word(k as u32), Argument::word(slack)],
            Self::Reaching(_) => [Argument::word(0), Argument::word(0)],
        }
    }
}

/// The rows of a launch: `count` of them, `first`, `first + step` and so on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
}

impl Chosen {
    /// Returns the arguments for kernels.
    pub(super) fn arguments<'a>(self) -> [Argument<'a>; 3] {
        [self.first.into(), self.step.into(), self.count.into()]
    }
}

/// Queries of a launch, `padded` including padding, in the upload for it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) count: usize,
    pub(super) padded: usize,
    pub(super) packed: Packed,
}

/// Launches a scan: queues the keys of the chosen rows for all queries, which are in `memory`. `sink`, the last
/// arguments of kernels, says where they go: all keys, or those that reach the bars.
pub(super) trait Scan {
    fn scan(
        &self,
        cuda: &mut Cuda,
        memory: &DeviceBuffer<u8>,
        chosen: Chosen,
        sink: [Argument<'_>; 5],
    ) -> Result<(), CudaError>;
}

/// Rows for each query; `None` if more rows fit the query than there is room for.
pub(super) type Lists = Vec<Option<Vec<u32>>>;

/// Returns the rows that may be wanted for each query: all wanted ones, and some more.
pub(super) fn find(
    cuda: &mut Cuda,
    room: &mut SearchMemory,
    rows: usize,
    asked: Asked,
    wanted: Wanted,
    scan: &impl Scan,
) -> Result<Vec<Vec<u32>>, CudaError> {
    if let Some(lists) = all(rows, &asked, wanted) {
        return Ok(lists);
    }
    let mut search = Search::begin(cuda, room, rows, asked, wanted, scan)?;
    search.at_once()?;
    search.in_spans()?;
    Ok(search
        .lists
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect())
}

/// As [`find`], but `None` for a query that more rows fit than there is room for.
pub(super) fn find_at_once(
    cuda: &mut Cuda,
    room: &mut SearchMemory,
    rows: usize,
    asked: Asked,
    wanted: Wanted,
    scan: &impl Scan,
) -> Result<Lists, CudaError> {
    if let Some(lists) = all(rows, &asked, wanted) {
        return Ok(lists.into_iter().map(Some).collect());
    }
    let mut search = Search::begin(cuda, room, rows, asked, wanted, scan)?;
    search.at_once()?;
    Ok(search.lists)
}

/// Returns all rows for each query, if all are wanted.
fn all(rows: usize, asked: &Asked, wanted: Wanted) -> Option<Vec<Vec<u32>>> {
    matches!(wanted, Wanted::Best(k, _) if k >= rows)
        .then(|| vec![(0..rows as u32).collect(); asked.count])
}

/// Returns the number of rows of the sample for the best `k`, 0 if no sample is large enough.
///
/// About k · rows / sample rows reach its bar; these, and the keys of the sample, cost about the same.
fn sample(rows: usize, k: usize) -> usize {
    let even = (rows as u64 * k as u64).isqrt().next_power_of_two();
    let sample = even.min(MOST_SAMPLE as u64) as usize;
    let sample = sample.max(LEAST_SAMPLE).min(rows);
    if k <= sample { sample } else { 0 }
}

/// A running search of rows.
pub(super) struct Search<'a, S> {
    pub(super) cuda: &'a mut Cuda,
    pub(super) memory: &'a mut DeviceBuffer<u8>,
    pub(super) places: Places,
    scan: &'a S,
    pub(super) rows: usize,
    pub(super) wanted: Wanted,
    sample: usize,
    padded: usize,
    pub(super) lists: Lists,
    /// Number of rows that reached each query's bar in the last scan.
    pub(super) counts: Vec<u32>,
}

impl<'a, S: Scan> Search<'a, S> {
    /// Uploads the queries, with initial bars and counts.
    fn begin(
        cuda: &'a mut Cuda,
        room: &'a mut SearchMemory,
        rows: usize,
        asked: Asked,
        wanted: Wanted,
        scan: &'a S,
    ) -> Result<Self, CudaError> {
        let Asked {
            count,
            padded,
            mut packed,
        } = asked;
        let capacity = CAPACITY.min(rows);
        let (bar, sample, results) = match wanted {
            Wanted::Best(k, _) => (0, sample(rows, k), (2 * k).max(LEAST_RESULTS)),
            Wanted::Reaching(bar) => (bar, 0, MOST_RESULTS),
        };
        // Queries of padding have a bar that almost nothing reaches.
        let mut bars = vec![u32::MAX; padded];
        bars[..count].fill(bar);
        let bars = packed.push(&bars);
        let counts = packed.push(&vec![0_u32; padded]);
        let results = results.min(capacity);
        let places = Places::new((bars, counts), (count, padded), results, capacity, sample);
        let memory = room.of(cuda, places.bytes)?;
        cuda.write_at(&packed.0, memory, 0)?;
        Ok(Self {
            cuda,
            memory,
            places,
            scan,
            rows,
            wanted,
            sample,
            padded,
            lists: vec![None; count],
            counts: vec![0; padded],
        })
    }

    /// Fills in the lists of the queries that have room.
    fn at_once(&mut self) -> Result<(), CudaError> {
        if self.sample > 0 {
            self.raise_by_sample()?;
        }
        self.scan_and_keep()?;
        let Wanted::Best(k, _) = self.wanted else {
            return Ok(());
        };
        // Of the rows that reach the bar, as many were kept as there is room for: their k-th best key is a higher bar.
        // Each turn leaves about k / capacity of the rows; if it leaves more than half, most of their keys are equal.
        let mut last = u32::MAX;
        while let over = self.over()
            && over > 0
            && over <= last
            && k <= self.places.capacity
        {
            last = over / 2;
            self.raise_by_found()?;
            self.scan_and_keep()?;
        }
        Ok(())
    }

    /// Returns the largest number of rows that reached the bar of a query without a list; 0 if all queries have lists.
    pub(super) fn over(&self) -> u32 {
        let lists = self.lists.iter().zip(&self.counts);
        let without = lists.filter(|(list, _)| list.is_none());
        without.map(|(_, &count)| count).max().unwrap_or(0)
    }

    /// Sets the bars from the keys of a sample.
    fn raise_by_sample(&mut self) -> Result<(), CudaError> {
        let (memory, places) = (&*self.memory, &self.places);
        let keys = memory.at(places.keys);
        let none = Argument::none();
        let chosen = Chosen {
            first: 0,
            step: self.rows / self.sample,
            count: self.sample,
        };
        let sink = [keys, none, none, none, 0_u32.into()];
        self.scan.scan(self.cuda, memory, chosen, sink)?;
        let [k, slack] = self.wanted.arguments();
        let count = (self.sample as u32).into();
        let arguments = [keys, count, k, slack, memory.at(places.bars)];
        let grid = LaunchGrid::new(self.lists.len() as u32, THREADS);
        // SAFETY: there are `count` keys, which the scan has written, and a bar, of each query.
        unsafe {
            self.cuda
                .launch("search_select", "search_bar", grid, &arguments)
        }
    }

    /// Raises the bars of queries that more rows fit than there is room for, using the kept keys, and resets their
    /// counts.
    fn raise_by_found(&mut self) -> Result<(), CudaError> {
        let (memory, places) = (&*self.memory, &self.places);
        let [k, slack] = self.wanted.arguments();
        let arguments = [
            memory.at(places.found),
            memory.at(places.counts),
            (places.capacity as u32).into(),
            k,
            slack,
            memory.at(places.bars),
        ];
        let grid = LaunchGrid::new(self.lists.len() as u32, THREADS);
        // SAFETY: of each query there are a bar, a count, and where this is more than the capacity as many candidates.
        unsafe {
            self.cuda
                .launch("search_select", "search_tighten", grid, &arguments)
        }
    }

    /// Adds the rows that reach their query's bar to the candidates.
    pub(super) fn scan_part(&mut self, first: usize, count: usize) -> Result<(), CudaError> {
        let (memory, places) = (&*self.memory, &self.places);
        let chosen = Chosen {
            first,
            step: 1,
            count,
        };
        let sink = [
            Argument::none(),
            memory.at(places.bars),
            memory.at(places.found),
            memory.at(places.counts),
            (places.capacity as u32).into(),
        ];
        self.scan.scan(self.cuda, memory, chosen, sink)
    }

    /// Scans all rows, and takes the lists of queries that have room.
    fn scan_and_keep(&mut self) -> Result<(), CudaError> {
        self.scan_part(0, self.rows)?;
        let (memory, places) = (&*self.memory, self.places);
        let [k, slack] = self.wanted.arguments();
        let arguments = [
            memory.at(places.found),
            memory.at(places.counts),
            (places.capacity as u32).into(),
            k,
            slack,
            memory.at(places.rows),
            (places.results as u32).into(),
            memory.at(places.kept),
        ];
        let queries = self.lists.len();
        let grid = LaunchGrid::new(queries as u32, THREADS);
        // SAFETY: of each query there are a count, as many candidates where these are no more than the capacity, and
        // room for rows and how many they are.
        unsafe {
            self.cuda
                .launch("search_select", "search_keep", grid, &arguments)?;
        }
        // The found and kept rows are stored after the counts.
        let mut words = vec![0_u32; self.padded + queries * (1 + places.results)];
        self.cuda
            .read_at(self.memory, places.counts, bytes_of_mut(&mut words))?;
        let (counts, words) = words.split_at(self.padded);
        let (kept, rows) = words.split_at(queries);
        self.counts.copy_from_slice(counts);
        for (query, (&kept, rows)) in kept.iter().zip(rows.chunks(places.results)).enumerate() {
            let count = counts[query] as usize;
            if self.lists[query].is_some() || count > places.capacity {
                continue;
            }
            self.lists[query] = Some(match rows.get(..kept as usize) {
                Some(rows) => rows.to_vec(),
                None => {
                    let mut found = self.found(query, count)?;
                    self.select(&mut found);
                    rows_of(&found)
                }
            });
        }
        Ok(())
    }
}
