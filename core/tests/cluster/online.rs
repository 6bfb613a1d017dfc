//! One point at a time, against a plain reimplementation in wide integers.

use proptest::prelude::*;
use tercet_core::cluster::{ClusterError, MAX_CAP, Online};

use super::support::{cases, distance};

const K: usize = 4;
const D: usize = 3;

/// The book: vectors, 128 bits, rationals rounded by their definition.
struct Book {
    sums: Vec<Vec<i128>>,
    counts: Vec<i128>,
    centroids: Vec<Vec<i8>>,
    cap: i128,
}

/// The nearest integer to `sum / count`, halves away from zero.
fn nearest(sum: i128, count: i128) -> i128 {
    (2 * sum.abs() + count) / (2 * count) * sum.signum()
}

impl Book {
    fn new(cap: u32) -> Self {
        Self {
            sums: vec![],
            counts: vec![],
            centroids: vec![],
            cap: cap.into(),
        }
    }

    fn observe(&mut self, x: &[i8]) -> (usize, i64, bool) {
        let mut best = (i64::MAX, 0);
        for (label, centroid) in self.centroids.iter().enumerate() {
            best = best.min((distance(x, centroid), label));
        }
        let seed = self.centroids.len() < K && best.0 > 0;
        if seed {
            best = (0, self.centroids.len());
            self.sums.push(vec![0; x.len()]);
            self.counts.push(0);
            self.centroids.push(x.to_vec());
        }
        let (distance, label) = best;
        for (sum, &x) in self.sums[label].iter_mut().zip(x) {
            *sum += i128::from(x);
        }
        self.counts[label] += 1;
        while self.counts[label] >= self.cap {
            let (count, half) = (self.counts[label], self.counts[label] / 2);
            for sum in &mut self.sums[label] {
                *sum = nearest(*sum * half, count);
            }
            self.counts[label] = half;
        }
        let rounded = |&sum| i8::try_from(nearest(sum, self.counts[label])).unwrap();
        self.centroids[label] = self.sums[label].iter().map(rounded).collect();
        (label, distance, seed)
    }
}

fn streams() -> impl Strategy<Value = Vec<[i8; D]>> {
    let coordinate = prop_oneof![
        3 => any::<i8>().boxed(),
        2 => (-2i8..3).boxed(),
        1 => prop_oneof![Just(-128i8), Just(127)].boxed(),
    ];
    prop::collection::vec(prop::array::uniform3(coordinate), 0..200)
}

fn follows(online: &mut Online<K, D>, book: &mut Book, stream: &[[i8; D]]) {
    for x in stream {
        let before = online.predict(x);
        let seen = online.observe(x);
        let (label, distance, seed) = book.observe(x);
        assert_eq!(
            (seen.label as usize, i64::from(seen.distance), seen.seed),
            (label, distance, seed)
        );
        assert_eq!(online.centroids().concat(), book.centroids.concat());
        if !seed {
            let before = before.unwrap();
            assert_eq!((before.label, before.distance), (seen.label, seen.distance));
        }
    }
    for (label, (sums, &count)) in book.sums.iter().zip(&book.counts).enumerate() {
        assert_eq!(i128::from(online.counts()[label]), count);
        let found = online.sums()[label].iter().map(|&sum| i128::from(sum));
        assert!(found.eq(sums.iter().copied()));
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_stream_is_clustered_by_the_book(stream in streams(), cap in prop_oneof![2u32..12, Just(MAX_CAP)]) {
        let mut online = Online::new();
        online.set_cap(cap).unwrap();
        follows(&mut online, &mut Book::new(cap), &stream);
    }

    #[test]
    fn given_centroids_are_clustered_by_the_book(
        stream in streams(),
        centroids in prop::array::uniform4(prop::array::uniform3(any::<i8>())),
        weight in 0u32..30,
    ) {
        let mut online = Online::with_centroids(centroids, weight).unwrap();
        let mut book = Book::new(MAX_CAP);
        for centroid in centroids {
            book.sums.push(centroid.map(|c| i128::from(c) * i128::from(weight)).to_vec());
            book.counts.push(weight.into());
            book.centroids.push(centroid.to_vec());
        }
        follows(&mut online, &mut book, &stream);
    }

    #[test]
    fn saved_clusters_go_on_as_if_never_stopped(stream in streams(), rest in streams(), cap in prop_oneof![2u32..12, Just(MAX_CAP)]) {
        let mut online = Online::<K, D>::new();
        online.set_cap(cap).unwrap();
        for x in &stream {
            online.observe(x);
        }
        let mut bytes = vec![7; Online::<K, D>::SAVED];
        online.save(&mut bytes).unwrap();
        let mut woken = Online::with_centroids([[9; D]; K], 4).unwrap();
        woken.load(&bytes).unwrap();
        prop_assert_eq!(&woken, &online);
        for x in &rest {
            prop_assert_eq!(woken.observe(x), online.observe(x));
        }
        prop_assert_eq!(woken, online);
    }

    #[test]
    fn hostile_bytes_are_refused_or_harmless(
        stream in streams(),
        places in prop::collection::vec((0..Online::<K, D>::SAVED, any::<u8>()), 0..3),
    ) {
        let mut online = Online::<K, D>::new();
        for x in &stream {
            online.observe(x);
        }
        let mut bytes = vec![0; Online::<K, D>::SAVED];
        online.save(&mut bytes).unwrap();
        for &(place, byte) in &places {
            bytes[place] = byte;
        }
        let mut woken = online.clone();
        match woken.load(&bytes) {
            Ok(()) => {
                let mut again = vec![0; bytes.len()];
                woken.save(&mut again).unwrap();
                prop_assert_eq!(again, bytes);
                for (sums, &count) in woken.sums().iter().zip(woken.counts()) {
                    let count = i64::from(count);
                    prop_assert!(count < i64::from(woken.cap()));
                    for &sum in sums {
                        prop_assert!((-128 * count..=127 * count).contains(&sum.into()));
                    }
                }
            }
            Err(ClusterError::State { offset }) => {
                prop_assert_eq!(&woken, &online);
                prop_assert!(offset < bytes.len());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_lower_cap_halves_at_the_same_mean(stream in streams(), cap in 2u32..9) {
        let mut online = Online::<K, D>::new();
        for x in &stream {
            online.observe(x);
        }
        let before = online.clone();
        online.set_cap(cap).unwrap();
        for label in 0..K {
            let (was, is) = (before.counts()[label], online.counts()[label]);
            prop_assert!(is < cap && (was < cap || is >= cap / 2));
            for (&was_sum, &is_sum) in before.sums()[label].iter().zip(&online.sums()[label]) {
                // Each halving rounds by at most ½, and what earlier ones rounded is halved with the rest: below 1 in
                // all.
                let exact = f64::from(was_sum) * f64::from(is) / f64::from(was.max(1));
                prop_assert!((exact - f64::from(is_sum)).abs() <= 1.0, "{was_sum}/{was} {is_sum}/{is}");
            }
        }
    }
}

#[test]
fn sums_stay_exact_at_the_ends_of_int8() {
    // One below the largest cap: the next point brings the sum to −128 · 2²⁴ = i32::MIN, then both are halved.
    for extreme in [i8::MIN, i8::MAX] {
        let mut online = Online::<1, 2>::with_centroids([[extreme; 2]], MAX_CAP - 1).unwrap();
        let sum = i32::from(extreme) * (1 << 23);
        online.observe(&[extreme; 2]);
        assert_eq!(online.counts(), &[1 << 23]);
        assert_eq!(online.sums(), &[[sum; 2]]);
        assert_eq!(online.centroids(), [[extreme; 2]]);
        // And again: the same bits, as often as it happens.
        for _ in 0..3 {
            for _ in 0..20 {
                online.observe(&[extreme; 2]);
            }
            online.set_cap((1 << 23) + 1).unwrap();
            assert_eq!(online.centroids(), [[extreme; 2]]);
        }
    }
}

#[test]
fn forgetting_follows_a_drift_without_going_past_it() {
    let mut online = Online::<1, 1>::new();
    online.set_cap(16).unwrap();
    for _ in 0..1000 {
        online.observe(&[-100]);
    }
    assert_eq!(online.centroids(), [[-100]]);
    let mut last = -100;
    for _ in 0..200 {
        online.observe(&[100]);
        let now = online.centroids()[0][0];
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    assert_eq!(last, 100);
}

#[test]
fn nothing_is_forgotten_below_the_cap() {
    let mut online = Online::<1, 1>::new();
    for x in 0..=127 {
        online.observe(&[x]);
        online.observe(&[-x]);
    }
    assert_eq!((online.sums(), online.counts()), (&[[0]], &[256]));
}

#[test]
fn seeds_are_distinct_points() {
    let mut online = Online::<3, 1>::new();
    assert_eq!(online.predict(&[5]), None);
    for (x, label, seed) in [
        (5, 0, true),
        (5, 0, false),
        (6, 1, true),
        (5, 0, false),
        (-9, 2, true),
        (7, 1, false),
    ] {
        let seen = online.observe(&[x]);
        assert_eq!((seen.label, seen.seed), (label, seed), "{x}");
    }
}

#[test]
fn longest_points_have_exact_distances() {
    let mut online = Box::new(Online::<2, 43_690>::new());
    online.observe(&[127; 43_690]);
    assert!(online.observe(&[-128; 43_690]).seed);
    let mut x = [127; 43_690];
    x[0] = -128;
    assert_eq!(online.predict(&x).unwrap().distance, 65_025);
    let one = Online::<1, 43_690>::with_centroids([[127; 43_690]], 1).unwrap();
    assert_eq!(
        one.predict(&[-128; 43_690]).unwrap().distance,
        65_025 * 43_690
    );
}

#[test]
fn caps_and_weights_out_of_range_are_refused() {
    let mut online = Online::<1, 1>::new();
    for cap in [0, 1, MAX_CAP + 1] {
        assert_eq!(online.set_cap(cap), Err(ClusterError::Cap { cap }));
    }
    assert_eq!(
        Online::with_centroids([[0]], MAX_CAP).unwrap_err(),
        ClusterError::Weight {
            total: 1 << 24,
            limit: (1 << 24) - 1
        }
    );
    assert_eq!(online, Online::new());
}

#[test]
fn saved_bytes_are_as_documented() {
    let mut online = Online::<2, 1>::with_centroids([[-3], [100]], 2).unwrap();
    online.set_cap(100).unwrap();
    online.observe(&[-128]);
    let mut bytes = [0; Online::<2, 1>::SAVED];
    online.save(&mut bytes).unwrap();
    let expected = [
        &b"TKM1"[..],
        &[2, 0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, 2, 0, 0, 0],
        &[3, 0, 0, 0, 2, 0, 0, 0],
        &[0x7A, 0xFF, 0xFF, 0xFF, 200, 0, 0, 0],
        // −134 / 3 is −44.7.
        &[0xD3, 100],
    ];
    assert_eq!(bytes[..], expected.concat());

    let refused = |place: usize, byte: u8, offset: usize| {
        let mut bytes = bytes;
        bytes[place] = byte;
        let mut woken = online.clone();
        assert_eq!(
            woken.load(&bytes),
            Err(ClusterError::State { offset }),
            "{place}"
        );
        assert_eq!(woken, online);
    };
    // The magic, another K, another D, caps too small and too large, more clusters than there are.
    refused(0, b't', 0);
    refused(4, 3, 4);
    refused(8, 2, 8);
    refused(12, 1, 12);
    refused(15, 2, 12);
    refused(16, 3, 16);
    // A cluster that is not in use, and yet counts.
    refused(16, 1, 24);
    // A count at the cap; a sum beyond its count; a centroid that is not the mean.
    refused(20, 100, 20);
    refused(24, 1, 32);
    refused(37, 101, 37);
    let mut short = online.clone();
    assert_eq!(
        short.load(&bytes[1..]).unwrap_err(),
        ClusterError::Length {
            expected: 38,
            found: 37
        }
    );
    assert!(online.save(&mut [0; 39]).is_err());
}
