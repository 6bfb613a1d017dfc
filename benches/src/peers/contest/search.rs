//! The ten rows of largest dot product with one query, over int8.

use super::data::codes;
use super::{Case, Event, Inputs, Rival, Subject, Work};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::time::Instant;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Dot, Hit, Int8Rows, Metric};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

/// Rows to find.
const TOP: usize = 10;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let million = if quick { 200_000 } else { 1_000_000 };
    let events = [(100_000, 384), (million, 256)].map(|(rows, dim)| {
        Event::new(
            format!("top {TOP} of int8, {}×{dim}", short(rows)),
            move |name, inputs| case(name, inputs, rows, dim),
        )
    });
    events.into()
}

fn case(name: &str, mut inputs: Inputs, rows: usize, dim: usize) -> io::Result<Case> {
    let values = codes(rows * dim, -127, 127);
    // A row backwards, so that no row is the query.
    let query: Vec<i8> = values[rows / 2 * dim..][..dim]
        .iter()
        .rev()
        .copied()
        .collect();
    inputs.put("rows", &values, &[rows, dim])?;
    inputs.put("query", &query, &[dim])?;
    let python = |label, module, what| Rival::Python {
        label,
        module,
        what,
    };
    Ok(Case {
        name: name.into(),
        work: (rows * dim) as f64,
        unit: "products",
        steps: None,
        threads: true,
        inputs,
        options: json!({"top": TOP}),
        tercet: Box::new(Search {
            values,
            query,
            dim,
            hits: vec![Hit::default(); TOP],
        }),
        rivals: vec![
            python("NumKong, scores alone", "numkong_", "search_scores"),
            python("SimSIMD, scores alone", "simsimd_", "search_scores"),
            python("faiss, signed bytes", "faiss_", "search"),
            python("faiss, SQ8", "faiss_", "search_sq8"),
            python("NumPy, f32 copy", "numpy_", "search"),
        ],
    })
}

struct Search {
    values: Vec<i8>,
    query: Vec<i8>,
    dim: usize,
    hits: Vec<Hit<<Dot as Metric>::Integer>>,
}

impl Search {
    fn score(&self, index: usize) -> i32 {
        let row = &self.values[index * self.dim..][..self.dim];
        let products = row.iter().zip(&self.query);
        products.map(|(x, q)| i32::from(*x) * i32::from(*q)).sum()
    }
}

impl Work for Search {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let rows = Int8Rows::new(&self.values, self.dim).expect("whole rows");
        let mut engine = Threads::default();
        let found = engine
            .base(rows)
            .and_then(|mut base| base.top_k::<Dot>(&self.query, &mut self.hits));
        found.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl Subject for Search {
    /// By the integers' scores of the rows that were found: equal ones may come in another order. SQ8's grid moves scores a
    /// little, so the last of its ten may be another.
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let indices = answer.u32("indices");
        let theirs: Vec<i32> = indices
            .iter()
            .map(|&index| self.score(index as usize))
            .collect();
        let ours: Vec<i32> = self.hits.iter().map(|hit| self.score(hit.index)).collect();
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
