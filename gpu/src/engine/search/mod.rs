//! Similarity search: the device finds the few rows that may be among the best, and core scores and ranks these.
//!
//! A scan computes a key of every row, an integer that is ordered like the scores
//! (`kernels/include/tercet/search.cuh`). The k-th best key of a sample is a bar that the k best of all rows reach.
//! Usually at most some thousands of rows reach it, and the device keeps those that can be among the best k. Their
//! scores come from [`Rows::scan`], so hits have core's bits, although keys are rounded.

mod ask;
mod bar;
mod cudas;
mod launches;
mod room;
mod rows;
mod scan;
mod spans;

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Hit, Metric, Rows, SearchError, TopK, Within, check_many};

use super::device::Cuda;
use super::error::CudaError;
pub use cudas::CudasBase;
pub use rows::DeviceRows;

use ask::{Ask, Goal};
use launches::QUERIES;

/// Minimum number of rows of a part of a base.
const LEAST: usize = 1024;
/// Minimum number of values to score for which starting several threads pays off.
const SEVERAL: usize = 1 << 16;

impl SearchEngine for Cuda {
    type Error = CudaError;
    type Base<'a, R: Rows + 'a> = Base<'a, R>;

    /// Copies the rows to the device, where they stay. If they do not fit, each call copies them part by part.
    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<'a, R>, CudaError> {
        let range = 0..rows.len();
        Base::new(self, rows, range)
    }
}

impl<'a, R: Rows> Base<'a, R> {
    /// Makes a base of a range of the rows.
    fn new(cuda: &'a mut Cuda, rows: R, range: Range<usize>) -> Result<Self, CudaError> {
        // Kernels count rows in 32 bits.
        let mut part = range.len().min(u32::MAX as usize);
        loop {
            match DeviceRows::upload(cuda, &rows, range.start..range.start + part) {
                Ok(resident) => {
                    return Ok(Self {
                        resident: (part == range.len()).then_some(RowsHandle::Own(resident)),
                        away: None,
                        cuda,
                        rows,
                        range,
                        part,
                    });
                }
                // The room of a scan must fit beside a part.
                Err(error) if error.is_out_of_memory() && part > LEAST => {
                    part = (part / 4).max(LEAST);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Rows copied for one base, or resident ones.
#[derive(Debug)]
enum RowsHandle<'a> {
    Own(DeviceRows),
    Resident(&'a DeviceRows),
}

impl RowsHandle<'_> {
    const fn get(&self) -> &DeviceRows {
        match self {
            Self::Own(rows) => rows,
            Self::Resident(rows) => rows,
        }
    }
}

/// Rows that were removed to make room for a search.
#[derive(Debug)]
enum Away<'a> {
    /// Dropped, with the bytes of each buffer that they and the room would take.
    Own(Vec<usize>),
    Resident(&'a DeviceRows),
}

impl Cuda {
    /// Copies rows to the device, for any number of bases ([`Cuda::base_of`]). O(rows · dim), once.
    ///
    /// # Errors
    /// [`SearchError::Length`] for more than 2³² − 1 rows; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn rows<R: Rows>(&mut self, rows: &R) -> Result<DeviceRows, CudaError> {
        let (found, expected) = (rows.len(), u32::MAX as usize);
        if found > expected {
            return Err(SearchError::Length { expected, found }.into());
        }
        DeviceRows::upload(self, rows, 0..found)
    }

    /// Makes a base of rows on the device, as [`SearchEngine::base`] does. `rows` are the same rows in the host's
    /// memory, where scores are computed. If the room of a scan does not fit beside the resident rows, they are copied
    /// part by part for that.
    ///
    /// # Errors
    /// [`SearchError::Length`] if the rows on the device differ in number, length or storage; [`CudaError::Length`] for
    /// rows of another engine.
    pub fn base_of<'a, R: Rows>(
        &'a mut self,
        rows: R,
        held: &'a DeviceRows,
    ) -> Result<Base<'a, R>, CudaError> {
        let (expected, found) = (rows.len(), held.count);
        if !held.fits(&rows) {
            return Err(SearchError::Length { expected, found }.into());
        }
        held.check(&self.pool)?;
        Ok(Base {
            cuda: self,
            rows,
            range: 0..found,
            resident: Some(RowsHandle::Resident(held)),
            away: None,
            part: found,
        })
    }
}

/// The rows of a base on a device.
#[derive(Debug)]
pub struct Base<'a, R> {
    cuda: &'a mut Cuda,
    rows: R,
    /// The rows to search: all, or a device's share.
    range: Range<usize>,
    /// All of these, if they fit.
    resident: Option<RowsHandle<'a>>,
    /// The same rows, while the memory beside them was too small for a search and is used otherwise.
    away: Option<Away<'a>>,
    /// Rows that are searched together.
    part: usize,
}

impl<R: Rows> Base<'_, R> {
    /// True if all rows stay on the device between calls. If a search found no room beside them, they do not stay until
    /// there is room.
    pub const fn is_resident(&self) -> bool {
        self.resident.is_some()
    }

    /// Takes removed rows back, if there seems to be room now.
    fn return_rows(&mut self) -> Result<(), CudaError> {
        let resident = match &self.away {
            None => return Ok(()),
            Some(Away::Resident(rows)) => RowsHandle::Resident(rows),
            Some(Away::Own(bytes)) => {
                if !self.cuda.can_allocate(bytes)? {
                    return Ok(());
                }
                match DeviceRows::upload(self.cuda, &self.rows, self.range.clone()) {
                    Ok(rows) => RowsHandle::Own(rows),
                    Err(error) if error.is_out_of_memory() => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        self.resident = Some(resident);
        self.away = None;
        self.part = self.range.len();
        Ok(())
    }

    /// Makes room, or lets the device process the rows in smaller parts, after the memory in `error` could not be
    /// allocated.
    fn give_way(&mut self, error: &CudaError) {
        self.part = (self.part / 4).max(LEAST);
        let asked = match error {
            CudaError::OutOfMemory { asked, .. } => *asked,
            _ => 0,
        };
        self.away = match self.resident.take() {
            Some(RowsHandle::Own(rows)) => Some(Away::Own([rows.bytes(), vec![asked]].concat())),
            Some(RowsHandle::Resident(rows)) => Some(Away::Resident(rows)),
            None => self.away.take(),
        };
    }

    /// Calls `found` with the first row of a part, from which rows are counted, and for each query a list of rows of
    /// the part. Every wanted row is in the list.
    ///
    /// If the room of a scan does not fit beside the rows, they are searched in smaller parts.
    fn candidates<M: Metric>(
        &mut self,
        queries: &[R::Query],
        goal: Goal,
        mut found: impl FnMut(&R, usize, Vec<Vec<u32>>),
    ) -> Result<(), CudaError> {
        self.return_rows()?;
        let Range { start, end } = self.range;
        let mut first = start;
        while first < end {
            let part = first..end.min(first + self.part);
            match self.candidates_of::<M>(queries, goal, part.clone()) {
                Ok(lists) => {
                    found(&self.rows, first, lists);
                    first = part.end;
                }
                Err(error) if error.is_out_of_memory() && self.part > LEAST => {
                    self.give_way(&error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the rows of a part that may be wanted, counted from its first, a list for each query.
    fn candidates_of<M: Metric>(
        &mut self,
        queries: &[R::Query],
        goal: Goal,
        part: Range<usize>,
    ) -> Result<Vec<Vec<u32>>, CudaError> {
        let copied = match &self.resident {
            Some(_) => None,
            None => Some(DeviceRows::upload(self.cuda, &self.rows, part)?),
        };
        let mut lists = Vec::new();
        let resident = self.resident.as_ref().map(RowsHandle::get);
        let Some(on_device) = resident.or(copied.as_ref()) else {
            return Ok(lists);
        };
        let mut room = on_device.room();
        for queries in queries.chunks(QUERIES * self.rows.dim().max(1)) {
            let mut ask = Ask {
                cuda: self.cuda,
                on_device,
                room: &mut room,
                goal,
            };
            lists.extend(self.rows.visit::<M, _>(queries, &mut [], &mut ask)?);
        }
        Ok(lists)
    }
}

impl<R: Rows> Base<'_, R> {
    /// Does [`SearchBase::top_k_all`] with checked arguments.
    fn best<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        if k == 0 {
            return Ok(0);
        }
        let dim = self.rows.dim().max(1);
        let mut best: Vec<_> = hits.chunks_mut(k).map(TopK::new).collect();
        self.candidates::<M>(queries, Goal::Best(k), |rows, first, lists| {
            let values = dim * lists.iter().map(Vec::len).sum::<usize>();
            let each = |((best, query), list): ((&mut TopK<'_, _>, &[R::Query]), Vec<u32>)| {
                score::<M, R>(rows, query, first, list, |index, score| {
                    best.push(index, score);
                });
            };
            if values < SEVERAL {
                let queries = queries.chunks_exact(dim);
                best.iter_mut().zip(queries).zip(lists).for_each(each);
            } else {
                let queries = queries.par_chunks_exact(dim);
                best.par_iter_mut().zip(queries).zip(lists).for_each(each);
            }
        })?;
        for best in best {
            best.into_sorted();
        }
        Ok(k.min(self.range.len()))
    }

    /// Does [`SearchBase::range`] with a checked query.
    fn within<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        let mut within = Within::new(threshold, hits)?;
        self.candidates::<M>(query, Goal::Reaching(threshold), |rows, first, lists| {
            for list in lists {
                score::<M, R>(rows, query, first, list, |index, score| {
                    within.push(index, score);
                });
            }
        })?;
        Ok(within.total())
    }
}

/// Calls `each` with the rows of a list, counted from `first` on, in ascending order and with their scores.
fn score<M: Metric, R: Rows>(
    rows: &R,
    query: &[R::Query],
    first: usize,
    mut list: Vec<u32>,
    mut each: impl FnMut(usize, R::Score<M>),
) {
    list.sort_unstable();
    for list in list.chunk_by(|&a, &b| a + 1 == b) {
        let start = first + list[0] as usize;
        rows.scan::<M>(query, start..start + list.len(), &mut each);
    }
}

impl<R: Rows> SearchBase for Base<'_, R> {
    type Rows = R;
    type Error = CudaError;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn top_k<M: Metric>(
        &mut self,
        query: &[R::Query],
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        self.rows.check_query(query)?;
        self.top_k_all::<M>(query, hits.len(), hits)
    }

    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        check_many(&self.rows, queries, k, hits.len())?;
        self.best::<M>(queries, k, hits)
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, CudaError> {
        self.rows.check_query(query)?;
        self.within::<M>(query, threshold, hits)
    }
}
