//! From keys to the rows that may be wanted: a bar, a scan, a selection.

use crate::engine::device::Cuda;
use crate::engine::error::CudaError;
use crate::engine::launch::{Argument, Grid};
use crate::engine::memory::DeviceBuffer;

/// Rows whose keys make a bar: of ten million rows some hundreds pass it for each of the best.
const SAMPLE: usize = 1 << 16;
/// Rows that may pass the bar; where they are more, rows are scanned again, so many at a time.
const CAPACITY: usize = 1 << 16;
/// Rows that come back after selection; where they are more, as above.
const ROOM: usize = 4096;

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// So many of the best, and those whose keys are lower by no more than the slack.
    Best(usize, u32),
    /// Those with this key or a larger one.
    Reaching(u32),
}

/// The rows that a launch looks at: `count` of them, `first`, `first + step` and so on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
}

impl Chosen {
    /// What kernels take of it.
    pub(super) fn arguments<'a>(self) -> [Argument<'a>; 3] {
        [self.first.into(), self.step.into(), self.count.into()]
    }
}

/// Where a launch's keys go.
#[derive(Debug)]
pub(super) enum Sink<'a> {
    /// All of them, query after query.
    Keys(&'a DeviceBuffer<u32>),
    /// Those that reach the bars, with their rows.
    Candidates(&'a Candidates),
}

impl<'a> Sink<'a> {
    /// What kernels take of it.
    pub(super) fn arguments(&self) -> [Argument<'a>; 5] {
        let none = Argument::none();
        match *self {
            Sink::Keys(keys) => [keys.into(), none, none, none, 0_u32.into()],
            Sink::Candidates(candidates) => [
                none,
                (&candidates.bars).into(),
                (&candidates.found).into(),
                (&candidates.counts).into(),
                (CAPACITY as u32).into(),
            ],
        }
    }
}

/// Rows that reach their query's bar.
#[derive(Debug)]
pub(super) struct Candidates {
    bars: DeviceBuffer<u32>,
    /// `key · 2³² + row`, [`CAPACITY`] for each query.
    found: DeviceBuffer<u64>,
    counts: DeviceBuffer<u32>,
}

/// What does a launch: queues the keys of the rows chosen, of all queries.
pub(super) trait Scan {
    fn scan(&self, cuda: &mut Cuda, chosen: Chosen, sink: &Sink<'_>) -> Result<(), CudaError>;
}

/// Rows for each query; `None` for one that more rows fit than there is room for.
pub(super) type Lists = Vec<Option<Vec<u32>>>;

/// The rows among the first `rows` that may be wanted, in any order, a list for each of `queries` queries. A scan has `padded` of them,
/// of which the last stand for nothing.
pub(super) fn find(
    cuda: &mut Cuda,
    rows: usize,
    queries: (usize, usize),
    wanted: Wanted,
    scan: &impl Scan,
) -> Result<Vec<Vec<u32>>, CudaError> {
    let (mut lists, candidates) = scanned(cuda, rows, queries, wanted, scan)?;
    if let Some(mut candidates) = candidates
        && lists.iter().any(Option::is_none)
    {
        one_by_one(cuda, rows, &mut candidates, &mut lists, scan)?;
    }
    Ok(lists.into_iter().map(Option::unwrap_or_default).collect())
}

/// As [`find`], but `None` for a query that more rows fit than there is room for.
pub(super) fn find_at_once(
    cuda: &mut Cuda,
    rows: usize,
    queries: (usize, usize),
    wanted: Wanted,
    scan: &impl Scan,
) -> Result<Lists, CudaError> {
    scanned(cuda, rows, queries, wanted, scan).map(|(lists, _)| lists)
}

/// One scan's lists, `None` where they had no room, and the memory it took.
fn scanned(
    cuda: &mut Cuda,
    rows: usize,
    (queries, padded): (usize, usize),
    wanted: Wanted,
    scan: &impl Scan,
) -> Result<(Lists, Option<Candidates>), CudaError> {
    if let Wanted::Best(k, _) = wanted
        && k >= rows
    {
        return Ok((vec![Some((0..rows as u32).collect()); queries], None));
    }
    let mut candidates = Candidates {
        bars: cuda.room(padded)?,
        found: cuda.room(padded * CAPACITY)?,
        counts: cuda.zeros(padded)?,
    };
    // Queries that stand for nothing have a bar that next to nothing reaches.
    cuda.fill(&mut candidates.bars, u32::MAX)?;
    let (k, slack) = match wanted {
        Wanted::Best(k, slack) => {
            let count = rows.min(SAMPLE);
            let step = rows / count;
            let keys = cuda.room(padded * count)?;
            let first = 0;
            scan.scan(cuda, Chosen { first, step, count }, &Sink::Keys(&keys))?;
            let arguments = [
                (&keys).into(),
                (count as u32).into(),
                (k as u32).into(),
                slack.into(),
                (&candidates.bars).into(),
            ];
            let grid = Grid::new(queries as u32, 1024);
            // SAFETY: there are `count` keys, which the scan has written, and a bar, of each of `queries` queries.
            unsafe { cuda.launch("search_select", "search_bar", grid, &arguments)? };
            (k, slack)
        }
        Wanted::Reaching(bar) => {
            cuda.fill(&mut candidates.bars, bar)?;
            (0, 0)
        }
    };
    let all = Chosen {
        first: 0,
        step: 1,
        count: rows,
    };
    scan.scan(cuda, all, &Sink::Candidates(&candidates))?;
    let lists = keep(cuda, &candidates, queries, k, slack)?;
    Ok((lists, Some(candidates)))
}

/// Of the candidates of each query those that may be among its best `k`, or all where `k` is 0; `None` where they have no room.
fn keep(
    cuda: &mut Cuda,
    candidates: &Candidates,
    queries: usize,
    k: usize,
    slack: u32,
) -> Result<Lists, CudaError> {
    let (rows, kept) = (cuda.zeros(queries * ROOM)?, cuda.zeros(queries)?);
    let arguments = [
        (&candidates.found).into(),
        (&candidates.counts).into(),
        (CAPACITY as u32).into(),
        (k as u32).into(),
        slack.into(),
        (&rows).into(),
        (ROOM as u32).into(),
        (&kept).into(),
    ];
    let grid = Grid::new(queries as u32, 1024);
    // SAFETY: of each query there are a count, as many candidates where these are no more than the capacity, room for rows, and a 0
    // to count them by.
    unsafe { cuda.launch("search_select", "search_keep", grid, &arguments)? };
    let (mut counts, mut lists) = (vec![0_u32; queries], vec![0_u32; queries * ROOM]);
    cuda.read(&kept, &mut counts)?;
    cuda.read(&rows, &mut lists)?;
    let lists = lists.chunks_exact(ROOM).zip(counts);
    Ok(lists
        .map(|(list, count)| list.get(..count as usize).map(<[u32]>::to_vec))
        .collect())
}

/// Fills in the lists that had no room: all candidates, of so many rows at a time that they have. That is slow where nearly all rows
/// fit equally well, and never wrong.
fn one_by_one(
    cuda: &mut Cuda,
    rows: usize,
    candidates: &mut Candidates,
    lists: &mut [Option<Vec<u32>>],
    scan: &impl Scan,
) -> Result<(), CudaError> {
    let missing: Vec<_> = (0..lists.len()).filter(|&q| lists[q].is_none()).collect();
    cuda.clear(&mut candidates.found)?;
    let mut counts = vec![0; candidates.counts.len()];
    let mut found = vec![0; candidates.found.len()];
    for first in (0..rows).step_by(CAPACITY) {
        cuda.clear(&mut candidates.counts)?;
        let chosen = Chosen {
            first,
            step: 1,
            count: CAPACITY.min(rows - first),
        };
        scan.scan(cuda, chosen, &Sink::Candidates(candidates))?;
        cuda.read(&candidates.counts, &mut counts)?;
        cuda.read(&candidates.found, &mut found)?;
        for &query in &missing {
            let found = &found[query * CAPACITY..][..(counts[query] as usize).min(CAPACITY)];
            let list = lists[query].get_or_insert_default();
            list.extend(found.iter().map(|&candidate| candidate as u32));
        }
    }
    Ok(())
}
