//! Similarity search: the device finds the few rows that may be among the best, core scores and ranks these.
//!
//! A scan computes a key of every row, an integer that orders as scores do (`kernels/include/tercet/search.cuh`). The k-th best of a
//! sample is a bar that the k best of all rows reach; what reaches it are some thousands of rows at most, mostly, of which the device keeps
//! those that can be among the best k. Their scores are [`Rows::scan`]'s, so that hits have core's bits, whatever a key rounds.

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

/// Rows of the smallest part that a base is worth cutting into.
const LEAST: usize = 1024;
/// Values of rows to be scored that are worth the threads' time to begin.
const SEVERAL: usize = 1 << 16;

impl SearchEngine for Cuda {
    type Error = CudaError;
    type Base<'a, R: Rows + 'a> = Base<'a, R>;

    /// Copies the rows to the device, where they stay. What does not fit is copied part by part by each call.
    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<'a, R>, CudaError> {
        let range = 0..rows.len();
        Base::new(self, rows, range)
    }
}

impl<'a, R: Rows> Base<'a, R> {
    /// Takes up a range of the rows.
    fn new(cuda: &'a mut Cuda, rows: R, range: Range<usize>) -> Result<Self, CudaError> {
        // Kernels count rows in 32 bits.
        let mut part = range.len().min(u32::MAX as usize);
        loop {
            match DeviceRows::upload(cuda, &rows, range.start..range.start + part) {
                Ok(resident) => {
                    return Ok(Self {
                        resident: (part == range.len()).then_some(Held::Own(resident)),
                        away: None,
                        cuda,
                        rows,
                        range,
                        part,
                    });
                }
                // The room of a scan has to fit beside a part.
                Err(error) if error.is_out_of_memory() && part > LEAST => {
                    part = (part / 4).max(LEAST);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Rows that were brought for one base, or those that stay.
#[derive(Debug)]
enum Held<'a> {
    Own(DeviceRows),
    Shared(&'a DeviceRows),
}

impl Held<'_> {
    const fn get(&self) -> &DeviceRows {
        match self {
            Self::Own(rows) => rows,
            Self::Shared(rows) => rows,
        }
    }
}

/// Rows that stood in the way of a search's room.
#[derive(Debug)]
enum Away<'a> {
    /// Dropped, with the bytes of each buffer that they and the room would take.
    Own(Vec<usize>),
    Shared(&'a DeviceRows),
}

impl Cuda {
    /// Copies rows to the device, for any number of bases ([`Cuda::base_of`]). O(rows · dim), once.
    ///
    /// # Errors
    /// [`SearchError::Length`] for more than 2³² − 1 rows; [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn rows<R: Rows>(&mut self, rows: &R) -> Result<DeviceRows, CudaError> {
        let (found, expected) = (rows.len(), u32::MAX as usize);
        if found > expected {
            return Err(SearchError::Length { expected, found }.into());
        }
        DeviceRows::upload(self, rows, 0..found)
    }

    /// Takes up rows that are on the device, as [`SearchEngine::base`] does; `rows` are the same in the host's memory, where scores are
    /// computed. Where the room of a scan does not fit beside them, they are copied part by part for that.
    ///
    /// # Errors
    /// [`SearchError::Length`] where the rows there are others by their number, length or storage; [`CudaError::Length`] for rows of another engine.
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
            resident: Some(Held::Shared(held)),
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
    /// The rows that are looked at: all, or a device's share.
    range: Range<usize>,
    /// All of these, where they fit.
    resident: Option<Held<'a>>,
    /// They again, while something else has the memory that they left no room in.
    away: Option<Away<'a>>,
    /// Rows that are looked at together.
    part: usize,
}

impl<R: Rows> Base<'_, R> {
    /// Whether all rows stay on the device between calls. Where a search found no room beside them they do not, until there is.
    pub const fn is_resident(&self) -> bool {
        self.resident.is_some()
    }

    /// Takes up rows again that were away, where there seems to be room now.
    fn return_rows(&mut self) -> Result<(), CudaError> {
        let resident = match &self.away {
            None => return Ok(()),
            Some(Away::Shared(rows)) => Held::Shared(rows),
            Some(Away::Own(bytes)) => {
                if !self.cuda.can_allocate(bytes)? {
                    return Ok(());
                }
                match DeviceRows::upload(self.cuda, &self.rows, self.range.clone()) {
                    Ok(rows) => Held::Own(rows),
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

    /// Makes room, or lets the device have the rows in smaller parts, after the memory that `error` tells of could not be had.
    fn give_way(&mut self, error: &CudaError) {
        self.part = (self.part / 4).max(LEAST);
        let asked = match error {
            CudaError::OutOfMemory { asked, .. } => *asked,
            _ => 0,
        };
        self.away = match self.resident.take() {
            Some(Held::Own(rows)) => Some(Away::Own([rows.bytes(), vec![asked]].concat())),
            Some(Held::Shared(rows)) => Some(Away::Shared(rows)),
            None => self.away.take(),
        };
    }

    /// Calls `found` with the first row of a part, from which rows are counted, and for each query the rows there that may be wanted: every
    /// row that is wanted is among them.
    ///
    /// Where the room of a scan does not fit beside the rows, they are looked at in smaller parts.
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

    /// The rows of a part that may be wanted, counted from its first, a list for each query.
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
        let resident = self.resident.as_ref().map(Held::get);
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
    /// [`SearchBase::top_k_all`] of what was checked.
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

    /// [`SearchBase::range`] of a query that was checked.
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
