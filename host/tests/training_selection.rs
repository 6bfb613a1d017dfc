//! Windows of a text that a run is restricted to, at random or evenly over clusters.

use tercet_core::number::counter;
use tercet_host::train::{Corpus, SelectedCluster, Selection, Tokens};

const CONTEXT: usize = 8;

/// Windows of three kinds, each with tokens of its own: of one 10, of one 30, and else of the third.
fn corpus() -> Corpus {
    let kind = |window: usize| match window % 20 {
        7 => 0,
        3 | 9 | 16 => 1,
        _ => 2,
    };
    let tokens = (0..201 * CONTEXT + 1).map(|at| {
        let draw = counter(0, 99, at as u64)[0] % 3;
        32 * kind(at / CONTEXT) + draw
    });
    let tokens = Tokens::InMemory(tokens.collect());
    Corpus::new(tokens, vec![1, 2, 3], CONTEXT, None, 4).unwrap()
}

fn selection(share: f64, clusters: Option<usize>) -> Selection {
    Selection {
        share,
        clusters,
        seed: 6,
    }
}

/// The kinds of the windows of three epochs.
fn kinds(corpus: &Corpus) -> [usize; 3] {
    let (mut inputs, mut targets) = ([0; CONTEXT], [0; CONTEXT]);
    let mut counts = [0; 3];
    for place in 0..3 * corpus.windows() {
        corpus.window(place, &mut inputs, &mut targets);
        assert!(inputs.iter().all(|token| token / 32 == inputs[0] / 32));
        counts[inputs[0] as usize / 32] += 1;
    }
    counts
}

#[test]
fn every_kind_of_window_is_kept_as_often_as_the_others() {
    let all = corpus().windows();
    assert_eq!(all, 200);
    let (even, selected) = corpus().select(&selection(0.24, Some(3))).unwrap();
    let of = |windows, kept| SelectedCluster { windows, kept };
    assert_eq!(selected.clusters, [of(10, 10), of(30, 19), of(160, 19)]);
    assert_eq!((selected.windows, selected.kept), (200, 48));
    assert_eq!(kinds(&even), [30, 57, 57]);
    // At random as often as they come.
    let (random, selected) = corpus().select(&selection(0.24, None)).unwrap();
    assert_eq!((selected.kept, random.windows()), (48, 48));
    assert!(selected.clusters.is_empty());
    let [rare, _, most] = kinds(&random);
    assert!(rare <= 3 * 6 && most >= 3 * 33, "{rare} {most}");
    // A choice is a part of a checkpoint's identity, and can be chosen from.
    let digests = [corpus().digest(), even.digest(), random.digest()];
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    let (less, selected) = even.select(&selection(0.5, Some(3))).unwrap();
    assert_eq!((selected.windows, selected.kept), (48, 24));
    assert_eq!(kinds(&less), [24, 24, 24]);
}

#[test]
fn a_choice_does_not_depend_on_threads_and_does_on_the_seed() {
    let digest = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let selection = Selection {
                seed,
                ..selection(0.3, Some(7))
            };
            corpus().select(&selection).unwrap().0.digest()
        })
    };
    assert_eq!(digest(1, 6), digest(3, 6));
    assert_ne!(digest(1, 6), digest(1, 7));
}

#[test]
fn impossible_choices_are_refused() {
    let refusal = |share, clusters| {
        let refused = corpus().select(&selection(share, clusters));
        refused.unwrap_err().to_string()
    };
    for share in [0.0, -1.0, 1.1, f64::NAN] {
        assert!(refusal(share, None).contains("above 0 and at most 1"));
    }
    assert!(refusal(0.004, None).contains("less than one"));
    let many = refusal(0.5, Some(201));
    assert!(
        many.contains("201 clusters cannot be made of 200 windows"),
        "{many}"
    );
    assert!(refusal(0.5, Some(0)).contains("0 clusters cannot"));
}
