//! Attention of one token over the cache, layer after layer, as decoding reads it.

use tercet_core::engine::ModelEngine;
use tercet_core::model::attention::Attention as Ask;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, PAGE, PageCodes, Pattern, Place, Sequence,
};

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// Sizes of an attention.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Sizes {
    /// Positions before the token, and its own.
    pub(in crate::measure) positions: usize,
    pub(in crate::measure) layers: usize,
    /// Query heads of a key head.
    pub(in crate::measure) group: usize,
    pub(in crate::measure) kv_heads: usize,
    /// Values of a head.
    pub(in crate::measure) head: usize,
}

/// A query for each head, and the codes of a page's keys and values, which all pages and layers share.
pub(in crate::measure) struct Attention {
    kind: CacheType,
    sizes: Sizes,
    queries: Vec<i16>,
    narrow: Vec<i8>,
    wide: Vec<i16>,
}

impl Attention {
    /// Returns attention over a cache of a type. A layer is a step; the layers' caches are one working set.
    pub(in crate::measure) fn new(kind: CacheType, sizes: Sizes) -> (LeastWork, Self) {
        let width = |wide: bool| if wide { 2 } else { 1 };
        let values = sizes.positions * sizes.kv_heads * sizes.head;
        let codes = values * (width(kind.wide_keys()) + width(kind.wide_values()));
        let scales = sizes.positions * sizes.kv_heads * 2 * size_of::<f32>();
        // The dot product of a score, and the weighted sum.
        let products = 2 * (values * sizes.group) as u64;
        let mut work = LeastWork::pass(2 * values, Traffic::Read, codes + scales)
            .with_products(products, Arithmetic::Int8);
        work.set *= sizes.layers;
        work.steps = sizes.layers as u32;
        let page = PAGE as usize * sizes.head;
        let wide = |count| -> Vec<i16> {
            // 16-bit codes reach 32,512: 256 · 127.
            let codes = input::codes(count).into_iter().rev();
            (codes.zip(input::codes(count)))
                .map(|(high, low)| i16::from(high) * 255 + i16::from(low))
                .collect()
        };
        let this = Self {
            kind,
            sizes,
            queries: wide(sizes.group * sizes.kv_heads * sizes.head),
            narrow: input::codes(page),
            wide: wide(page),
        };
        (work, this)
    }

    /// Fills the pages of every layer.
    fn fill(&self, cache: &mut Cache<'_>, sequence: &Sequence<'_>) {
        let Sizes {
            positions,
            layers,
            kv_heads,
            head,
            ..
        } = self.sizes;
        for first in (0..positions).step_by(PAGE as usize) {
            let len = (positions - first).min(PAGE as usize);
            let page = sequence.page(first as u32).expect("the sequence has it");
            // From 1/64 to 1/32, so that scores differ.
            let scales: Vec<f32> = (first..first + len)
                .map(|position| (64 + position % 61) as f32 / 4096.0)
                .collect();
            let codes = |wide| match wide {
                true => PageCodes::Wide(&self.wide[..len * head]),
                false => PageCodes::Narrow(&self.narrow[..len * head]),
            };
            let keys = (codes(self.kind.wide_keys()), &scales[..]);
            let values = (codes(self.kind.wide_values()), &scales[..]);
            for layer in 0..layers {
                for head in 0..kv_heads {
                    legal(cache.load((page, layer, head), keys, values));
                }
            }
        }
    }
}

impl Operation for Attention {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let sizes = self.sizes;
        let shape = CacheShape {
            kind: self.kind,
            layers: sizes.layers,
            heads: sizes.kv_heads,
            head: sizes.head,
        };
        let context = sizes.positions as u32;
        let pages = Sequence::pages(Pattern::FULL, context, 1);
        let codes = |wide: bool| {
            let len = shape.codes() * pages;
            let (narrow, own) = if wide { (0, len) } else { (len, 0) };
            (vec![0i8; narrow], vec![0i16; own])
        };
        let (mut keys, mut values) = (codes(self.kind.wide_keys()), codes(self.kind.wide_values()));
        let mut scales = vec![0.0; 2 * shape.scales() * pages];
        let (mut free, mut table) = (vec![0; pages], vec![0; pages]);
        let mut cache = legal(Cache::new(
            shape,
            whole(&mut keys, self.kind.wide_keys()),
            whole(&mut values, self.kind.wide_values()),
            &mut scales,
            &mut free,
        ));
        let sequence = Sequence::new(Pattern::FULL, self.kind, context, 1, &mut table);
        let mut sequences = [legal(sequence)];
        legal(sequences[0].restore(context, &mut cache));
        self.fill(&mut cache, &sequences[0]);
        let place = Place {
            sequence: 0,
            position: context - 1,
            fault: None,
        };
        let heads = sizes.group * sizes.kv_heads;
        let query_scales = vec![1.0 / (1 << 20) as f32; heads];
        let mut scores = vec![0.0; pages * PAGE as usize];
        let mut sums = vec![0; sizes.head];
        let mut out = vec![0.0; heads * sizes.head * sizes.layers];
        with_engine!(by, engine => {
            let mut step = || {
                for (layer, out) in out.chunks_exact_mut(heads * sizes.head).enumerate() {
                    let ask = Ask {
                        cache: &cache,
                        sequences: &sequences,
                        places: &[place],
                        layer,
                        heads,
                        queries: &self.queries,
                        scales: &query_scales,
                        sink_queries: &[],
                        sink_scales: &[],
                    };
                    legal(engine.attend(&ask, &mut scores, &mut sums, out));
                }
            };
            clock.time(&mut step);
        });
        Bits::default().with_floats(&out).finish()
    }
}

fn whole((narrow, wide): &mut (Vec<i8>, Vec<i16>), is_wide: bool) -> Codes<'_> {
    match is_wide {
        true => Codes::Wide(wide),
        false => Codes::Narrow(narrow),
    }
}
