//! Digests; the suite itself prints messages.

use core::hint::black_box;

use tercet_core::conformance::{
    Digest, Memory, Quantized, Section, entries, expected, is_small, online,
};

use crate::reach::reach;

reach! {
    Digest::new,
    Digest::value,
    Digest::bytes,
    Digest::u64,
    Digest::f32,
    Digest::f64,
    Digest::f32s,
    Digest::i8s,
    Digest::sum,
    <Digest as Default>::default,
    Digest::resume,
    Quantized::new,
    Quantized::run,
    <Quantized as Default>::default,
    Memory::new,
    Memory::run,
    <Memory as Default>::default,
    online::<8, 6>,
    expected,
    is_small,
    Section::case_bytes,
    entries,
    each_entry,
}

fn each_entry() {
    entries().for_each(|entry| {
        black_box(entry);
    });
}
