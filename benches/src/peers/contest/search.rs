//! The ten rows of largest dot product or cosine with one query, over int8.

use super::data::codes;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, Metric};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

/// Number of rows to find.
pub(super) const TOP: usize = 10;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let million = if quick { 200_000 } else { 1_000_000 };
    let shapes = [(100_000, 384), (million, 256)];
    let dots = shapes.map(|(rows, dim)| {
        let name = format!("top {TOP} dot of int8, {}×{dim}", short(rows));
        Event::new(name, move |name, inputs| {
            case(name, inputs, rows, dim, dot_of)
        })
    });
    let cosines = shapes.map(|(rows, dim)| {
        let name = format!("top {TOP} cosine of int8, {}×{dim}", short(rows));
        Event::new(name, move |name, inputs| {
            case(name, inputs, rows, dim, cosine_of)
        })
    });
    dots.into_iter().chain(cosines).collect()
}

/// Tercet's side, and its rivals.
type Contest = (Box<dyn Subject>, Vec<Rival>);

fn dot_of(search: Search) -> Contest {
    let rivals = vec![
        Rival::python("NumKong, scores alone", "numkong_", "search_scores"),
        Rival::python("SimSIMD, scores alone", "simsimd_", "search_scores"),
        Rival::python("faiss, signed bytes", "faiss_", "search"),
        Rival::python("faiss, SQ8", "faiss_", "search_sq8"),
        Rival::python("NumPy, f32 copy", "numpy_", "search"),
    ];
    (Box::new(Of::<Dot>::new(search)), rivals)
}

fn cosine_of(search: Search) -> Contest {
    let rivals = vec![
        Rival::python("NumKong, angles alone", "numkong_", "cosine_scores"),
        Rival::python("SimSIMD, cosines alone", "simsimd_", "cosine_scores"),
    ];
    (Box::new(Of::<Cosine>::new(search)), rivals)
}

fn case(
    name: &str,
    mut inputs: Inputs,
    rows: usize,
    dim: usize,
    contest: fn(Search) -> Contest,
) -> io::Result<Case> {
    let (tercet, rivals) = contest(search(&mut inputs, rows, dim)?);
    Ok(Case {
        name: name.into(),
        work: (rows * dim) as f64,
        unit: "products",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({"top": TOP}),
        tercet,
        rivals,
    })
}

/// Makes random rows and a query, and also writes them to `inputs`.
pub(super) fn search(inputs: &mut Inputs, rows: usize, dim: usize) -> io::Result<Search> {
    let values = codes(rows * dim, -127, 127);
    // A reversed row, so that no row equals the query.
    let query: Vec<i8> = values[rows / 2 * dim..][..dim]
        .iter()
        .rev()
        .copied()
        .collect();
    inputs.put("rows", &values, &[rows, dim])?;
    inputs.put("query", &query, &[dim])?;
    let mut norms = vec![0; rows];
    let written = Int8Rows::new(&values, dim).and_then(|rows| rows.write_norms(&mut norms));
    written.unwrap_or_else(|error| panic!("{error}"));
    Ok(Search {
        values: values.into(),
        norms: norms.into(),
        query,
        dim,
    })
}

#[derive(Clone)]
pub(super) struct Search {
    pub(super) values: Arc<[i8]>,
    /// Squared lengths, by which cosines are divided.
    norms: Arc<[u32]>,
    pub(super) query: Vec<i8>,
    pub(super) dim: usize,
}

pub(super) struct Of<M: Metric> {
    search: Search,
    pub(super) hits: Vec<Hit<M::Integer>>,
}

impl<M: Metric> Of<M> {
    pub(super) fn new(search: Search) -> Self {
        let hits = vec![Hit::default(); TOP];
        Self { search, hits }
    }

    fn score(&self, index: usize) -> M::Integer {
        let Search {
            values,
            norms,
            query,
            dim,
        } = &self.search;
        let row = &values[index * dim..][..*dim];
        let products = row.iter().zip(query);
        let dot = products.map(|(x, q)| i32::from(*x) * i32::from(*q)).sum();
        let norm: i32 = query.iter().map(|&q| i32::from(q) * i32::from(q)).sum();
        M::integer(dot, norm as u32, norms[index])
    }
}

impl<M: Metric> TimedWork for Of<M> {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let Search {
            values,
            norms,
            query,
            dim,
        } = &self.search;
        let rows = Int8Rows::new(values, *dim).and_then(|rows| rows.with_norms(norms));
        let rows = rows.unwrap_or_else(|error| panic!("{error}"));
        let mut engine = Threads::default();
        let found = engine
            .base(rows)
            .and_then(|mut base| base.top_k::<M>(query, &mut self.hits));
        found.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl<M: Metric> Native for Of<M> {
    fn answer(&self) -> Answer {
        let indices = self.hits.iter().map(|hit| hit.index as u32);
        let bytes: Vec<u8> = indices.flat_map(u32::to_le_bytes).collect();
        Answer::of("indices", &bytes)
    }
}

impl<M: Metric> Subject for Of<M> {
    /// Compares the integer scores of the rows that were found, because equal ones may come in a different order.
    /// SQ8's grid changes scores a little, so the last of its ten may differ.
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let indices = answer.u32("indices");
        let theirs: Vec<_> = indices
            .iter()
            .map(|&index| self.score(index as usize))
            .collect();
        let ours: Vec<_> = self.hits.iter().map(|hit| self.score(hit.index)).collect();
        let hits: Vec<usize> = self.hits.iter().map(|hit| hit.index).collect();
        let shared = indices
            .iter()
            .filter(|&&index| hits.contains(&(index as usize)));
        match shared.count() {
            _ if theirs == ours => Ok("same hits".into()),
            shared if shared + 1 >= TOP && theirs.len() == TOP => {
                Ok(format!("{shared} of {TOP} hits"))
            }
            shared => Err(format!(
                "{shared} of {TOP} hits, scores {theirs:?} for {ours:?}"
            )),
        }
    }
}
