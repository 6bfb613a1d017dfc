//! Searches of rows on the device, by the type of the rows.

use tercet_core::number::{Element, sum_of_squares};
use tercet_core::search::{FloatRows, Hit, Int8Rows, Metric, Rows, TernaryRows, Visitor};

use super::bar;
use super::launches::{FLOATS, Floats, Integers, Kernel, Order, Queries, Way};
use super::room::{Packed, SearchMemory};
use super::rows::{DeviceRows, Pitched, Storage};
use super::scan::{Asked, Lists, Wanted, find, find_at_once};
use crate::engine::device::Cuda;
use crate::engine::error::CudaError;

/// The goal of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The given number of best rows.
    Best(usize),
    /// The rows that reach a threshold, which is not NaN.
    Reaching(f32),
}

/// Searches on the device for the rows that may be wanted, with a list for each query.
pub(super) struct Ask<'a> {
    pub(super) cuda: &'a mut Cuda,
    pub(super) on_device: &'a DeviceRows,
    pub(super) room: &'a mut SearchMemory,
    pub(super) goal: Goal,
}

impl<'a> Ask<'a> {
    /// Rows of integers.
    fn integers<M: Metric>(
        &mut self,
        queries: &[i8],
        dim: usize,
        rows: &Pitched,
        kernel: &Kernel<'a>,
    ) -> Result<Vec<Vec<u32>>, CudaError> {
        let mut lists = Vec::new();
        let mut left = queries;
        while !left.is_empty() {
            let way = Way::of(self.cuda, kernel, rows, left.len() / dim);
            let (these, later) = left.split_at(left.len().min(way.queries * dim));
            left = later;
            // There may be no room for many queries. In that case, and for queries with more fitting rows than there is
            // room for, search for a few at a time.
            let mut found = match self.found::<M>(these, dim, rows, kernel, &way) {
                Err(error) if way.tiles && error.is_out_of_memory() => {
                    vec![None; these.len() / dim]
                }
                found => found?,
            };
            let few = Way::few(kernel, rows);
            let missing: Vec<_> = (0..found.len()).filter(|&at| found[at].is_none()).collect();
            for numbers in missing.chunks(few.queries) {
                let query = |&at: &usize| &these[at * dim..][..dim];
                let part: Vec<i8> = numbers.iter().flat_map(query).copied().collect();
                let part = self.found::<M>(&part, dim, rows, kernel, &few)?;
                for (&at, list) in numbers.iter().zip(part) {
                    found[at] = list;
                }
            }
            lists.extend(found.into_iter().map(Option::unwrap_or_default));
        }
        Ok(lists)
    }

    /// Returns the lists of the queries of one launch: all lists, or on tensor cores those that had room.
    fn found<M: Metric>(
        &mut self,
        queries: &[i8],
        dim: usize,
        rows: &Pitched,
        kernel: &Kernel<'a>,
        way: &Way,
    ) -> Result<Lists, CudaError> {
        let order = Order {
            dim,
            runs: kernel.runs,
            run: rows.row,
            pitch: rows.pitch,
        };
        let mut packed = Packed::default();
        let queries = Queries::pack(queries, order, &mut packed);
        let wanted = match self.goal {
            Goal::Best(k) => Wanted::Best(k, bar::slack(M::KIND)),
            Goal::Reaching(threshold) => {
                let norm = queries.squares.first().copied().unwrap_or(0);
                match bar::of_integers::<M>(threshold, norm) {
                    Some(bar) => Wanted::Reaching(bar),
                    None => return Ok(vec![Some(Vec::new()); queries.count]),
                }
            }
        };
        let asked = Asked {
            count: queries.count,
            padded: queries.padded,
            packed,
        };
        let scan = Integers {
            kernel,
            way,
            queries: &queries,
            metric: bar::number(M::KIND),
        };
        let (cuda, room, rows) = (&mut *self.cuda, &mut *self.room, self.on_device.count);
        match way.tiles {
            true => find_at_once(cuda, room, rows, asked, wanted, &scan),
            false => find(cuda, room, rows, asked, wanted, &scan)
                .map(|lists| lists.into_iter().map(Some).collect()),
        }
    }
}

impl Visitor for Ask<'_> {
    type Output = Result<Vec<Vec<u32>>, CudaError>;

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        queries: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let on_device = self.on_device;
        let Storage::Int8 { rows: bytes, norms } = &on_device.storage else {
            return Ok(Vec::new());
        };
        let kernel = Kernel {
            names: ["search_int8", "search_mma_int8"],
            one: Some("search_one_int8"),
            rows: vec![
                (&bytes.bytes).into(),
                bytes.pitch.into(),
                norms.as_ref().into(),
            ],
            runs: 1,
        };
        self.integers::<M>(queries, rows.dim(), bytes, &kernel)
    }

    fn ternary<M: Metric>(
        &mut self,
        _: TernaryRows<'_>,
        queries: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let on_device = self.on_device;
        let Storage::Ternary {
            rows,
            dim,
            magnitudes,
            norms,
        } = &on_device.storage
        else {
            return Ok(Vec::new());
        };
        let kernel = Kernel {
            names: ["search_ternary", "search_mma_ternary"],
            one: None,
            rows: vec![
                (&rows.bytes).into(),
                rows.pitch.into(),
                (rows.row as u32).into(),
                (*dim as u32).into(),
                magnitudes.as_ref().into(),
                norms.as_ref().into(),
            ],
            runs: 4,
        };
        self.integers::<M>(queries, *dim, rows, &kernel)
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        queries: &[f32],
        _: &mut [Hit<M::Float>],
    ) -> Self::Output {
        let mut lists = Vec::new();
        let dim = rows.dim();
        for queries in queries.chunks(FLOATS * dim) {
            let wanted = match self.goal {
                Goal::Best(k) => Wanted::Best(k, 0),
                Goal::Reaching(threshold) => Wanted::Reaching(bar::of_floats(M::KIND, threshold)),
            };
            let count = queries.len() / dim;
            let padded = if count == 1 { 1 } else { FLOATS };
            let mut values = vec![0.0; padded * dim];
            values[..queries.len()].copy_from_slice(queries);
            let mut norms = vec![0.0; padded];
            if M::FLOAT_NORMS {
                let queries = queries.chunks_exact(dim);
                for (norm, query) in norms.iter_mut().zip(queries) {
                    *norm = sum_of_squares(query);
                }
            }
            let mut packed = Packed::default();
            let scan = Floats {
                storage: &self.on_device.storage,
                padded,
                values: packed.push(&values),
                norms: packed.push(&norms),
                metric: bar::number(M::KIND),
            };
            let asked = Asked {
                count,
                padded,
                packed,
            };
            let (cuda, room, rows) = (&mut *self.cuda, &mut *self.room, self.on_device.count);
            lists.extend(find(cuda, room, rows, asked, wanted, &scan)?);
        }
        Ok(lists)
    }
}
