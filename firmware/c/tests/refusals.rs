//! Checks that every mistake that a C caller can make is refused with its own status, and writes nothing.

use core::ptr::{null, null_mut};
use std::ffi::CStr;

use tercet_c::*;

const WORDS: usize = 5 + 12 + 4 + 3;

/// Four clusters of three coordinates.
fn clusters(memory: &mut [u32; WORDS]) -> *mut Online {
    let mut clusters = null_mut();
    // SAFETY: the memory is there, and this test's own.
    let status = unsafe { tercet_online_init(memory.as_mut_ptr(), WORDS, 4, 3, &mut clusters) };
    assert_eq!(status, Status::Ok);
    clusters
}

fn message(status: i32) -> &'static str {
    // SAFETY: messages are constant strings.
    let message = unsafe { CStr::from_ptr(tercet_message(status)) };
    message.to_str().unwrap()
}

#[test]
fn every_status_has_its_own_message() {
    let unknown = message(-1);
    let known: Vec<_> = (0..)
        .map(message)
        .take_while(|text| *text != unknown)
        .collect();
    assert_eq!(known.len(), Status::NoClusters as usize + 1);
    for (index, text) in known.iter().enumerate() {
        assert!(!text.is_empty() && !known[..index].contains(text));
    }
    assert_eq!(message(i32::MIN), unknown);
}

#[test]
fn null_is_refused_where_there_is_something_to_point_to() {
    let (mut codes, mut scale) = ([7; 4], 9.0);
    let values = [1.0, 2.0, 3.0, 4.0];
    // SAFETY: what is not null is this test's own.
    unsafe {
        let symmetric = |values, codes, scales| {
            tercet_quantize_symmetric(values, codes, 4, 127, scales, 1, null_mut())
        };
        assert_eq!(
            symmetric(null(), codes.as_mut_ptr(), &mut scale),
            Status::Null
        );
        assert_eq!(
            symmetric(values.as_ptr(), null_mut(), &mut scale),
            Status::Null
        );
        assert_eq!(
            symmetric(values.as_ptr(), codes.as_mut_ptr(), null_mut()),
            Status::Null
        );
        assert_eq!((codes, scale), ([7; 4], 9.0));
        assert_eq!(
            symmetric(values.as_ptr(), codes.as_mut_ptr(), &mut scale),
            Status::Ok
        );
        assert_eq!(codes, [32, 64, 95, 127]);

        assert_eq!(tercet_digest_u64(null_mut(), 1), Status::Null);
        let mut digest = TERCET_DIGEST;
        assert_eq!(tercet_digest_bytes(&mut digest, null(), 1), Status::Null);
        assert_eq!(tercet_digest_bytes(&mut digest, null(), 0), Status::Ok);
        assert_eq!(digest, TERCET_DIGEST);

        assert_eq!(
            tercet_online_observe(null_mut(), [0; 3].as_ptr(), 3, null_mut()),
            Status::Null
        );
        assert_eq!(
            tercet_network_open(null_mut(), [0; 3].as_ptr(), 3),
            Status::Null
        );
        assert!(tercet_arena_alloc(null_mut(), 1, 1).is_null());
    }
}

#[test]
fn misaligned_pointers_are_refused() {
    let mut words = [0_u64; 64];
    let bytes = words.as_mut_ptr().cast::<u8>();
    let odd = bytes.wrapping_add(1);
    let mut clusters = null_mut();
    // SAFETY: all of it lies in `words`.
    unsafe {
        assert_eq!(
            tercet_online_init(odd.cast(), WORDS, 4, 3, &mut clusters),
            Status::Alignment
        );
        assert_eq!(
            tercet_quantize_symmetric(
                odd.cast(),
                bytes.wrapping_add(64).cast(),
                4,
                127,
                bytes.wrapping_add(128).cast(),
                1,
                null_mut()
            ),
            Status::Alignment
        );
        assert_eq!(
            tercet_arena_init(odd.cast(), bytes.wrapping_add(256).cast(), 16),
            Status::Alignment
        );
        assert_eq!(tercet_digest_u64(odd.cast(), 1), Status::Alignment);
    }
    assert!(clusters.is_null());
    assert_eq!(words, [0; 64]);
}

#[test]
fn outputs_that_overlap_are_refused() {
    let mut words = [0_u32; 64];
    let start = words.as_mut_ptr();
    // SAFETY: all of it lies in `words`.
    unsafe {
        // Codes in place of the values, and the scale behind them.
        let status = tercet_quantize_symmetric(
            start.cast(),
            start.cast(),
            4,
            127,
            start.wrapping_add(8).cast(),
            1,
            null_mut(),
        );
        assert_eq!(status, Status::Overlap);
        // The last label is the first distance.
        let status = tercet_assign(
            start.cast(),
            4,
            1,
            start.cast(),
            2,
            start.wrapping_add(8),
            start.wrapping_add(11),
            null_mut(),
        );
        assert_eq!(status, Status::Overlap);
        // Points and centroids may be the same: both are read.
        let status = tercet_assign(
            start.cast(),
            4,
            1,
            start.cast(),
            2,
            start.wrapping_add(8),
            start.wrapping_add(12),
            null_mut(),
        );
        assert_eq!(status, Status::Ok);
        // The arena in its own memory.
        let arena = start.wrapping_add(16).cast();
        assert_eq!(tercet_arena_init(arena, start.cast(), 256), Status::Overlap);
    }
    let mut memory = [0; WORDS];
    let own = clusters(&mut memory);
    // SAFETY: the clusters are this test's own.
    unsafe {
        let inside = own.cast::<i8>().wrapping_add(40);
        assert_eq!(
            tercet_online_observe(own, inside, 3, null_mut()),
            Status::Overlap
        );
    }
}

#[test]
fn lengths_that_no_address_can_hold_are_refused() {
    let mut word = 0_u32;
    let start: *mut u32 = &mut word;
    let mut clusters = null_mut();
    let half = usize::MAX / 2 + 1;
    // SAFETY: refused before anything is read.
    unsafe {
        for (k, d) in [(half, 2), (usize::MAX, usize::MAX), (half / 2, 3)] {
            let status = tercet_online_init(start, usize::MAX, k, d, &mut clusters);
            assert_eq!(status, Status::Limit, "{k} x {d}");
        }
        let status = tercet_assign(
            start.cast(),
            half,
            2,
            start.cast(),
            1,
            start,
            start,
            null_mut(),
        );
        assert_eq!(status, Status::Limit);
        let mut digest = 0;
        let status = tercet_digest_bytes(&mut digest, start.cast(), usize::MAX);
        assert_eq!(status, Status::Limit);
    }
}

#[test]
fn objects_that_were_not_initialised_are_refused() {
    let mut memory = [0_u32; WORDS];
    let raw: *mut Online = memory.as_mut_ptr().cast();
    let mut words = [usize::MAX; 192];
    let mut seen = Observation::default();
    // SAFETY: the memory is this test's own.
    unsafe {
        assert_eq!(
            tercet_online_observe(raw, [0; 3].as_ptr(), 3, &mut seen),
            Status::State
        );
        assert_eq!(tercet_online_set_cap(raw, 4), Status::State);
        let network = words.as_mut_ptr().cast::<Network>();
        let mut sizes = NetworkSizes::default();
        assert_eq!(tercet_network_sizes(network, &mut sizes), Status::State);
        assert_eq!(
            tercet_network_open(network, [0; 7].as_ptr(), 7),
            Status::File
        );
        // Refused, so still no network.
        assert_eq!(tercet_network_sizes(network, &mut sizes), Status::State);
        let arena = words.as_mut_ptr().cast::<Arena>();
        assert!(tercet_arena_alloc(arena, 1, 1).is_null());
        assert_eq!(tercet_arena_rewind(arena, 0), Status::State);
    }
}

#[test]
fn clusters_refuse_other_lengths_and_foreign_bytes() {
    let mut memory = [0; WORDS];
    let own = clusters(&mut memory);
    let mut found = Nearest::default();
    let mut saved = [0; 20 + 4 * 19];
    // SAFETY: the memory is this test's own.
    unsafe {
        let point = [1, 2, 3, 4];
        assert_eq!(
            tercet_online_predict(own, point.as_ptr(), 3, &mut found),
            Status::NoClusters
        );
        assert_eq!(
            tercet_online_observe(own, point.as_ptr(), 4, null_mut()),
            Status::Length
        );
        assert_eq!(
            tercet_online_observe(own, point.as_ptr(), 3, null_mut()),
            Status::Ok
        );
        assert_eq!(tercet_online_set_cap(own, 1), Status::Argument);
        assert_eq!(
            tercet_online_save(own, saved.as_mut_ptr(), saved.len() - 1),
            Status::Length
        );
        assert_eq!(
            tercet_online_save(own, saved.as_mut_ptr(), saved.len()),
            Status::Ok
        );
        let before = memory;
        let own = memory.as_mut_ptr().cast();
        let whole = saved;
        saved[16] = 9;
        assert_eq!(
            tercet_online_load(own, saved.as_ptr(), saved.len()),
            Status::Saved
        );
        assert_eq!(memory, before);
        let own = memory.as_mut_ptr().cast();
        assert_eq!(
            tercet_online_load(own, whole.as_ptr(), whole.len()),
            Status::Ok
        );
        assert_eq!(memory, before);
    }
}

#[test]
fn options_outside_their_range_are_refused() {
    let (values, mut codes, mut scale) = ([1.0_f32, 2.0], [0; 2], 0.0);
    let (values, codes) = (values.as_ptr(), codes.as_mut_ptr());
    // SAFETY: the memory is this test's own.
    unsafe {
        let mut ternary = |rule, from| {
            tercet_quantize_ternary(
                values,
                codes,
                2,
                rule,
                from,
                &raw mut scale,
                1,
                null_mut(),
                0,
                null_mut(),
            )
        };
        assert_eq!(ternary(4, 0), Status::Argument);
        assert_eq!(ternary(0, 2), Status::Argument);
        assert_eq!(ternary(u32::MAX, u32::MAX), Status::Argument);
        assert_eq!(ternary(3, 1), Status::Ok);
        let mut symmetric = |limit, groups| {
            let scale = &raw mut scale;
            tercet_quantize_symmetric(values, codes, 2, limit, scale, groups, null_mut())
        };
        assert_eq!(symmetric(0, 1), Status::Argument);
        assert_eq!(symmetric(-1, 1), Status::Argument);
        assert_eq!(symmetric(127, 0), Status::Length);
        let grid = Grid {
            scale: f32::NAN,
            zero_point: 0,
            low: -127,
            high: 127,
        };
        let status = tercet_quantize_fixed(values, codes, 2, &grid, null_mut());
        assert_eq!(status, Status::Argument);
    }
}

#[test]
fn an_arena_keeps_its_figures_through_marks_and_refusals() {
    let mut memory = [0_u64; 8];
    let mut words = [0_usize; 8];
    let arena = words.as_mut_ptr().cast::<Arena>();
    let mut usage = ArenaStats::default();
    let mut mark = 9;
    // SAFETY: the memory is this test's own.
    unsafe {
        let start = memory.as_mut_ptr();
        assert_eq!(tercet_arena_init(arena, start.cast(), 64), Status::Ok);
        let first = tercet_arena_alloc(arena, 3, 1);
        assert_eq!(first, start.cast());
        assert_eq!(tercet_arena_mark(arena, &mut mark), Status::Ok);
        assert_eq!(mark, 3);
        let second = tercet_arena_alloc(arena, 16, 16).addr();
        assert!(second.is_multiple_of(16) && second > start.addr());
        assert!(tercet_arena_alloc(arena, 64, 1).is_null());
        assert!(tercet_arena_alloc(arena, 1, 3).is_null());
        assert!(tercet_arena_alloc(arena, usize::MAX, 1).is_null());
        assert_eq!(tercet_arena_rewind(arena, 64), Status::Argument);
        assert_eq!(tercet_arena_rewind(arena, mark), Status::Ok);
        assert_eq!(tercet_arena_stats(arena, &mut usage), Status::Ok);
    }
    assert_eq!((usage.capacity, usage.in_use), (64, 3));
    assert!(usage.high_water >= 19 && usage.failures >= 2);
}
