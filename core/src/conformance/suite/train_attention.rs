//! The gradient of attention.

use super::train::numbers;
use super::{Digest, input};
use crate::engine::TrainEngine;
use crate::model::attention::Attention;
use crate::model::{
    Cache, CacheShape, CacheType, Codes, ModelError, PAGE, Pattern, Place, Sequence,
};
use crate::number::Random;
use crate::train::{AttentionGradient, AttentionGradients, AttentionScratch};

/// Numbers of rows of a sequence, sequences, query heads, key heads, and values of a head.
type Shape = (usize, usize, usize, usize, usize);

/// Memory for one case, with slices of a shape's lengths.
struct CaseMemory<'r> {
    keys: &'r mut [i8],
    values: &'r mut [i8],
    scales: &'r mut [f32],
    free: &'r mut [u32],
    tables: &'r mut [u32],
    places: &'r mut [Place],
    queries: &'r mut [i16],
    query_scales: &'r mut [f32],
    d_out: &'r mut [f32],
    out: &'r mut [f32],
    d_queries: &'r mut [f32],
    d_keys: &'r mut [f32],
    d_values: &'r mut [f32],
    scratch: AttentionScratch<'r>,
}

/// Functions with memory for shapes: pages, codes of a page and its scales, rows, elements of a row's queries and
/// keys, and of the scratch.
macro_rules! rooms {
    ($($name:ident: $pages:literal pages of $codes:literal codes and $scales:literal scales, $rows:literal rows of $queries:literal and $keys:literal values, $floats:literal floats, $bytes:literal bytes, $ints:literal ints, $longs:literal longs;)+) => {
        $(#[inline(never)]
        fn $name<E: TrainEngine>(engine: &mut E, shapes: &[Shape]) -> u64 {
            let mut digest = Digest::new();
            let mut room = CaseMemory {
                keys: &mut [0; $pages * $codes],
                values: &mut [0; $pages * $codes],
                scales: &mut [0.0; $pages * $scales],
                free: &mut [0; $pages],
                tables: &mut [0; $pages],
                places: &mut [Place::default(); $rows],
                queries: &mut [0; $rows * $queries],
                query_scales: &mut [0.0; $rows * 4],
                d_out: &mut [0.0; $rows * $queries],
                out: &mut [0.0; $rows * $queries],
                d_queries: &mut [0.0; $rows * $queries],
                d_keys: &mut [0.0; $rows * $keys],
                d_values: &mut [0.0; $rows * $keys],
                scratch: AttentionScratch {
                    floats: &mut [0.0; $floats],
                    bytes: &mut [0; $bytes],
                    ints: &mut [0; $ints],
                    longs: &mut [0; $longs],
                },
            };
            for &shape in shapes {
                let done = room.gradient(engine, shape, &mut digest);
                digest.outcome(done);
            }
            digest.value()
        })+
    };
}

rooms! {
    little: 2 pages of 256 codes and 128 scales, 10 rows of 8 and 4 values, 645 floats, 20 bytes, 324 ints, 516 longs;
    long: 3 pages of 3072 codes and 256 scales, 130 rows of 96 and 48 values, 24640 floats, 1536 bytes, 4824 ints, 9240 longs;
}

pub(super) fn run_engine<E: TrainEngine>(
    engine: &mut E,
    report: &mut dyn FnMut(&'static str, u64),
) {
    report(
        "train/attention",
        little(engine, &[(1, 1, 2, 1, 4), (5, 2, 2, 1, 4)]),
    );
}

/// Lengths of groups and pages, and one row more and less.
pub(super) fn run_long<E: TrainEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    let shapes = [63, 64, 65, 130].map(|length| (length, 1, 4, 2, 24));
    report("train/attention/130", long(engine, &shapes));
}

impl CaseMemory<'_> {
    #[inline(never)]
    fn gradient<E: TrainEngine>(
        &mut self,
        engine: &mut E,
        (length, sequences, heads, kv_heads, head): Shape,
        digest: &mut Digest,
    ) -> Result<(), E::Failure> {
        let rows = length * sequences;
        let shape = CacheShape {
            kind: CacheType::Int8,
            layers: 1,
            heads: kv_heads,
            head,
        };
        let mut random = Random::new(94);
        let mut code = |_: &i8| (random.below(255) as i32 - 127) as i8;
        for codes in [&mut *self.keys, &mut *self.values] {
            codes.iter_mut().for_each(|to| *to = code(to));
        }
        for query in self.queries.iter_mut() {
            *query = (random.below(65_025) as i32 - 32_512) as i16;
        }
        let own = length.div_ceil(PAGE as usize);
        let pages = own * sequences;
        let free = self.free.get_mut(..pages).unwrap_or_default();
        let (keys, values) = (Codes::Narrow(self.keys), Codes::Narrow(self.values));
        // A cache's scales are finite and not below 0.
        input::Family::Bell.fill(95, self.scales);
        self.scales
            .iter_mut()
            .for_each(|scale| *scale = scale.abs() / 64.0);
        let mut cache = Cache::new(shape, keys, values, self.scales, free)?;
        let none = || Sequence::new(Pattern::FULL, CacheType::Int8, 0, 1, &mut []);
        let mut all = [none()?, none()?];
        let tables = self.tables.chunks_mut(own);
        let context = length as u32;
        for (sequence, table) in all.iter_mut().zip(tables).take(sequences) {
            *sequence = Sequence::new(Pattern::FULL, CacheType::Int8, context, 1, table)?;
            sequence.restore(context, &mut cache)?;
        }
        for (row, place) in self.places.iter_mut().enumerate().take(rows) {
            *place = Place {
                sequence: row / length,
                position: (row % length) as u32,
                fault: None,
            };
        }
        let lengths = (rows * heads, rows * heads * head, rows * kv_heads * head);
        let (
            Some(queries),
            Some(scales),
            Some(places),
            Some(out),
            Some(d_out),
            Some(d_queries),
            Some(d_keys),
            Some(d_values),
        ) = (
            self.queries.get(..lengths.1),
            self.query_scales.get_mut(..lengths.0),
            self.places.get(..rows),
            self.out.get_mut(..lengths.1),
            self.d_out.get_mut(..lengths.1),
            self.d_queries.get_mut(..lengths.1),
            self.d_keys.get_mut(..lengths.2),
            self.d_values.get_mut(..lengths.2),
        )
        else {
            return Err(ModelError::TooLarge.into());
        };
        // Scores of some units.
        input::Family::Bell.fill(96, scales);
        scales
            .iter_mut()
            .for_each(|scale| *scale = scale.abs() / 32_768.0);
        let attention = Attention {
            cache: &cache,
            sequences: &all,
            places,
            layer: 0,
            heads,
            queries,
            scales,
            sink_queries: &[],
            sink_scales: &[],
        };
        let sums = self.scratch.longs.get_mut(..head).unwrap_or_default();
        engine.attend(&attention, self.scratch.floats, sums, out)?;
        numbers(digest, out);
        for last in [0.0, f32::NAN] {
            input::Family::Bell.fill(97, d_out);
            d_out.iter_mut().for_each(|d| *d /= 32.0);
            if let Some(d) = d_out.last_mut().filter(|_| last.is_nan()) {
                *d = last;
            }
            let job = AttentionGradient {
                attention,
                length,
                out,
                d_out,
            };
            let mut gradients = AttentionGradients {
                queries: d_queries,
                keys: d_keys,
                values: d_values,
            };
            let within = engine.attention_gradient(&job, &mut self.scratch, &mut gradients)?;
            digest.u64(within.into());
            if within {
                for values in [&*d_queries, &*d_keys, &*d_values] {
                    numbers(digest, values);
                }
            }
        }
        Ok(())
    }
}
