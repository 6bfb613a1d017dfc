//! Laws of the cost model.

use proptest::prelude::*;

use super::{Bound, Cost, Curve, CurveError, Prediction, Sample, Sweeps};
use crate::dispatch::{Job, Location, Operation};

fn job(bytes: u64, work: u64) -> Job {
    Job {
        work,
        ..Job::each(Operation::Search, bytes, bytes, 0)
    }
}

/// Points at different amounts.
fn points() -> impl Strategy<Value = Vec<(u64, f64)>> {
    prop::collection::btree_map(1u64..1 << 40, 0.0f64..10.0, 1..12)
        .prop_map(|points| points.into_iter().collect())
}

/// Amounts up to the largest 64-bit number, with small ones as frequent as large ones.
fn amounts() -> impl Strategy<Value = u64> {
    (0u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
}

proptest! {
    #[test]
    fn more_never_takes_less(points in points(), a in amounts(), b in amounts()) {
        let curve = Curve::new(points).unwrap();
        let (less, more) = (curve.seconds(a.min(b)), curve.seconds(a.max(b)));
        prop_assert!(less >= 0.0 && more.is_finite());
        // Beyond the points, products may round.
        prop_assert!(less <= more * (1.0 + 1e-12), "{less} {more}");
    }

    #[test]
    fn predictions_grow_with_everything(
        points in points(), busy in points(), each in points(), copies in points(), launch in 0.0f64..1.0,
        bytes in amounts(), work in amounts(), items in amounts(), more in amounts(),
    ) {
        let cost = Cost {
            launch,
            items: Some(Curve::new(each).unwrap()),
            memory: Curve::new(points).unwrap(),
            compute: Some(Curve::new(busy).unwrap()),
            transfer: Some(Curve::new(copies).unwrap()),
        };
        let of = |bytes, work, items| Job { items, ..job(bytes, work) };
        let total = |bytes, work, items| cost.predict(&of(bytes, work, items)).total();
        let least = total(bytes, work, items) * (1.0 - 1e-12);
        prop_assert!(least >= 0.0 && least >= launch * (1.0 - 1e-12));
        prop_assert!(total(bytes.saturating_add(more), work, items) >= least);
        prop_assert!(total(bytes, work.saturating_add(more), items) >= least);
        prop_assert!(total(bytes, work, items.saturating_add(more)) >= least);
        let there = cost.predict(&of(bytes, work, items).at(Location::Device));
        prop_assert_eq!(there.transfer, 0.0);
        prop_assert!(there.total() <= total(bytes, work, items));
        // Data that is already there needs no copy: the more of it, the less time, and none with all of it.
        let held = cost.predict(&of(bytes, work, items).holding(more));
        prop_assert!(held.transfer <= cost.predict(&of(bytes, work, items)).transfer * (1.0 + 1e-12));
        prop_assert_eq!(cost.predict(&of(bytes, work, items).holding(bytes)).transfer, 0.0);
    }

    #[test]
    fn measured_points_are_predicted(mut seconds in prop::collection::vec(1e-9f64..1.0, 1..10), copies in points()) {
        seconds.sort_by(f64::total_cmp);
        let samples: Vec<_> = (0..).zip(&seconds).map(|(power, &seconds)| {
            let bytes = 64u64 << (2 * power);
            Sample { bytes, work: bytes / 2, items: 0, seconds }
        }).collect();
        let copies = Curve::new(copies).unwrap();
        for transfer in [None, Some(&copies)] {
            let cost = Cost::fit(Sweeps { streaming: &samples, ..Sweeps::default() }, transfer).unwrap();
            for sample in &samples {
                let found = cost.predict(&job(sample.bytes, sample.work)).total();
                // The copy curve is made monotone on its own: then one part of a call may count as another.
                let exact = transfer.is_none();
                let tolerance = if exact { 1e-9 * sample.seconds + 1e-11 } else { sample.seconds };
                prop_assert!((found - sample.seconds).abs() <= tolerance, "{found} {sample:?}");
            }
        }
    }

    #[test]
    fn a_fit_finds_the_constants_of_a_made_up_engine(
        launch in 1e-7f64..1e-4, bandwidth in 1e8f64..1e12, rate in 1e9f64..1e14, each in 1e-9f64..1e-6,
        copied in 1e9f64..1e11, away in any::<bool>(),
    ) {
        let copied = away.then(|| Curve::constant(copied));
        let engine = |bytes: u64, work: u64, items: u64| {
            let transfer = copied.as_ref().map_or(0.0, |curve| curve.seconds(bytes));
            let busy = (bytes as f64 / bandwidth).max(work as f64 / rate);
            let seconds = launch + items as f64 * each + transfer + busy;
            Sample { bytes, work, items, seconds }
        };
        let streaming: Vec<_> = (6..28).step_by(2).map(|power| engine(1 << power, 0, 1 << power >> 10)).collect();
        let busy: Vec<_> = (20..40).step_by(2).map(|power| engine(64, 1 << power, 64)).collect();
        let many: Vec<_> = (10..24).step_by(3).map(|power| engine(1 << power, 0, 1 << power >> 4)).collect();
        let sweeps = Sweeps { streaming: &streaming, busy: &busy, many: &many };
        let cost = Cost::fit(sweeps, copied.as_ref()).unwrap();
        let near = |found: f64, is: f64, part: f64| (found / is - 1.0).abs() <= part;
        prop_assert!(near(cost.launch, launch, 0.01), "{} {launch}", cost.launch);
        // Enough of it, so that the launch does not hide it.
        let large = 1 << 26;
        if large as f64 / bandwidth > launch {
            prop_assert!(near(cost.memory.rate(large), bandwidth, 0.02));
        }
        let work = 1 << 38;
        if work as f64 / rate > launch {
            prop_assert!(near(cost.compute.as_ref().unwrap().rate(work), rate, 0.02));
        }
        // Enough, so that they are visible beside the launch.
        let items = 1 << 20;
        if items as f64 * each > 0.3 * launch {
            let seconds = cost.items.as_ref().unwrap().seconds(items);
            prop_assert!(near(seconds, items as f64 * each, 0.1), "{seconds} {each}");
        }
        // Between the points, and beyond them, with few items, as many as were measured, and more.
        for power in (7..34).step_by(3) {
            for items in [0, 3 << power >> 10, 3 << power >> 5] {
                let sample = engine(3 << power, 0, items);
                let job = Job { items, ..job(sample.bytes, 0) };
                let found = cost.predict(&job).total();
                prop_assert!(near(found, sample.seconds, 0.1), "{found} {sample:?}");
            }
        }
    }

    #[test]
    fn items_never_make_measured_calls_be_predicted_worse(times in prop::collection::vec(1e-8f64..1e-3, 12), width in 1u64..64) {
        let sample = |(index, &seconds): (usize, &f64)| {
            let bytes = 256u64 << (2 * (index % 6));
            // The second half has more items per byte.
            let items = bytes / if index < 6 { 64 * width } else { width };
            Sample { bytes, work: bytes, items: items.max(1 + index as u64 % 6), seconds }
        };
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let samples: Vec<_> = times.iter().enumerate().map(sample).collect();
        let (streaming, many) = samples.split_at(6);
        let off = |many: &[Sample]| {
            let cost = Cost::fit(Sweeps { streaming, busy: &[], many }, None).unwrap();
            let squares = samples.iter().map(|it| {
                let job = Job { items: it.items, ..job(it.bytes, it.work) };
                (cost.predict(&job).total().max(1e-12) / it.seconds).ln().powi(2)
            });
            squares.sum::<f64>()
        };
        let mut distinct = many.to_vec();
        distinct.dedup_by_key(|it| it.items);
        if distinct.len() == many.len() {
            prop_assert!(off(many) <= off(&[]) * (1.0 + 1e-9) + 1e-9);
        }
    }

    #[test]
    fn who_does_calls_as_another_is_predicted_alike(times in prop::collection::vec(1e-8f64..1e-3, 12), faster in 0.3f64..0.8) {
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let sample = |index: usize, items: u64, seconds| {
            let bytes = 256u64 << (2 * index);
            Sample { bytes, work: bytes, items, seconds }
        };
        let few = |part: &dyn Fn(usize) -> f64| -> Vec<_> {
            (0..6).map(|at| sample(at, 1 << (2 * at), times[2 * at] * part(at))).collect()
        };
        let many = |part: &dyn Fn(usize) -> f64| -> Vec<_> {
            (0..6).map(|at| sample(at, 16 << (2 * at), times[2 * at + 1] * part(at))).collect()
        };
        let (streaming, crowded) = (few(&|_| 1.0), many(&|_| 1.0));
        let one = Sweeps { streaming: &streaming, busy: &[], many: &crowded };
        let like = Cost::fit(one, None).unwrap();
        // Only the largest calls are faster.
        let part = |at| if at < 5 { 1.0 } else { faster };
        let (all_streaming, all_crowded) = (few(&part), many(&part));
        let all = Sweeps { streaming: &all_streaming, busy: &[], many: &all_crowded };
        let same = Cost::fit_like(one, &like, one).unwrap();
        let cost = Cost::fit_like(all, &like, one).unwrap();
        for (bytes, items) in [(1, 0), (300, 3), (5000, 64), (60_000, 900)] {
            let job = Job { items, ..job(bytes, bytes) };
            let expected = like.predict(&job).total();
            prop_assert!((same.predict(&job).total() / expected - 1.0).abs() < 1e-9);
        }
        prop_assert_eq!(cost.launch, like.launch);
        // The largest call with many items: no larger one bounds its time.
        if let Some(items) = &like.items && items.seconds(16 << 10) > 1e-11 {
            let found = cost.items.as_ref().unwrap().seconds(16 << 10);
            prop_assert!((found / items.seconds(16 << 10) / faster - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn curves_go_through_files(points in points()) {
        let curve = Curve::new(points).unwrap();
        let text = serde_json::to_string(&curve).unwrap();
        let read: Curve = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.points().len(), curve.points().len());
        for ((amount, seconds), (read_amount, read_seconds)) in curve.points().zip(read.points()) {
            prop_assert_eq!(amount, read_amount);
            // The reader rounds the last digit in its own way.
            prop_assert!((read_seconds / seconds - 1.0).abs() < 1e-15);
        }
    }
}

#[test]
fn a_curve_is_a_line_through_logarithms_between_its_points() {
    let curve = Curve::new([(100, 1e-6), (10_000, 1e-2)]).unwrap();
    // Halfway on logarithmic scales.
    assert!((curve.seconds(1000) / 1e-4 - 1.0).abs() < 1e-9);
    assert!((curve.seconds(50) / 0.5e-6 - 1.0).abs() < 1e-9);
    assert!((curve.seconds(1_000_000) / 1.0 - 1.0).abs() < 1e-9);
    // A smaller amount that took longer was disturbed.
    let curve = Curve::new([(100, 5e-3), (10_000, 1e-3)]).unwrap();
    assert_eq!(
        curve.points().collect::<Vec<_>>(),
        [(100, 1e-3), (10_000, 1e-3)]
    );
}

#[test]
fn what_is_no_curve_is_refused() {
    assert_eq!(Curve::new([]), Err(CurveError::Empty));
    assert_eq!(Curve::new([(0, 1.0)]), Err(CurveError::Amount(0)));
    assert_eq!(
        Curve::new([(7, 1.0), (9, 1.0), (7, 2.0)]),
        Err(CurveError::Amount(7))
    );
    assert_eq!(Curve::new([(7, -1.0)]), Err(CurveError::Seconds(-1.0)));
    assert!(matches!(
        Curve::new([(7, f64::NAN)]),
        Err(CurveError::Seconds(_))
    ));
    assert!(Cost::fit(Sweeps::default(), None).is_err());
    for text in [
        r#"{"launch":-1,"memory":[[1,1]]}"#,
        r#"{"launch":0,"memory":[]}"#,
        r#"{"launch":0,"memory":[[1,-1]]}"#,
        r#"{"launch":0}"#,
        r#"{"launch":0,"memory":[[1,1]],"items":[]}"#,
    ] {
        assert!(serde_json::from_str::<Cost>(text).is_err(), "{text}");
    }
    // A file from before items had a time.
    let cost: Cost = serde_json::from_str(r#"{"launch":0,"memory":[[1,1]]}"#).unwrap();
    assert_eq!(cost.items, None);
}

proptest! {
    #[test]
    fn phases_take_as_long_as_each_alone(parts in prop::array::uniform10(0.0f64..10.0)) {
        let of = |at: usize| Prediction {
            launch: parts[at],
            items: parts[at + 1],
            transfer: parts[at + 2],
            memory: parts[at + 3],
            compute: parts[at + 4],
            apart: 0.0,
        };
        let (first, second) = (of(0), of(5));
        let both = first.then(&second);
        let total = first.total() + second.total();
        prop_assert!((both.total() - total).abs() <= 1e-12 * total, "{both:?}");
        // A third one after them.
        let three = both.then(&first);
        prop_assert!((three.total() - total - first.total()).abs() <= 1e-12 * three.total());
    }
}

#[test]
fn the_largest_part_is_what_a_job_is_bound_by() {
    let of = |launch, items, transfer, memory, compute| {
        Prediction {
            launch,
            items,
            transfer,
            memory,
            compute,
            apart: 0.0,
        }
        .bound()
    };
    assert_eq!(of(3.0, 1.0, 1.0, 1.0, 1.0), Bound::Launch);
    assert_eq!(of(1.0, 3.0, 1.0, 1.0, 1.0), Bound::Compute);
    assert_eq!(of(1.0, 1.0, 3.0, 1.0, 1.0), Bound::Transfer);
    assert_eq!(of(1.0, 1.0, 1.0, 3.0, 1.0), Bound::Memory);
    assert_eq!(of(1.0, 1.0, 1.0, 1.0, 3.0), Bound::Compute);
}
