//! Contenders of the k-means table take the same steps.

#[path = "../../host/tests/support/mod.rs"]
mod support;

use tercet_benches::kmeans::{Data, Effort, Pool, Who, measure};
use tercet_benches::peers::python::Python;

/// Few, so that the test is quick; the times say nothing.
const EFFORT: Effort = Effort {
    steps: 4,
    seconds: 0.0,
};

fn contenders(who: Who) -> [(Who, Pool); 2] {
    Pool::ALL.map(|pool| (who, pool))
}

#[test]
fn tercet_runs_alone_where_there_is_no_python() {
    let row = measure(&Data::mixture(500, 12, 5), None, EFFORT).unwrap();
    let found: Vec<_> = row.times.iter().map(|time| (time.0, time.1)).collect();
    assert_eq!(found, contenders(Who::Tercet));
    assert_eq!((row.products, row.inertia), (30_000.0, None));
}

#[test]
fn a_contender_that_converges_before_the_last_step_is_refused() {
    let effort = Effort {
        steps: 1000,
        seconds: 0.0,
    };
    let error = measure(&Data::mixture(200, 4, 3), None, effort).unwrap_err();
    assert!(error.to_string().contains("converged after"), "{error}");
}

#[test]
fn scikit_learn_takes_the_same_steps() {
    if support::python_with(&["numpy", "sklearn", "threadpoolctl"]).is_none() {
        return;
    }
    let mut python = Python::start().unwrap();
    let row = measure(&Data::mixture(2_000, 16, 8), Some(&mut python), EFFORT).unwrap();
    let found: Vec<_> = row.times.iter().map(|time| (time.0, time.1)).collect();
    for contender in contenders(Who::ScikitLearn) {
        assert!(found.contains(&contender), "{found:?}");
    }
    // From the same centroids, so that only the int8 grid is between them.
    let ratio = row.inertia.unwrap();
    assert!((ratio - 1.0).abs() < 2e-3, "{ratio}");
}

#[test]
fn faiss_takes_the_same_steps_as_scikit_learn() {
    if support::python_with(&["numpy", "sklearn", "threadpoolctl", "faiss"]).is_none() {
        return;
    }
    let data = Data::mixture(2_000, 16, 8);
    let mut python = Python::start().unwrap();
    python.data(&data.values, &data.start(), data.dims).unwrap();
    let [ours, theirs] = ["scikit-learn", "faiss"].map(|peer| {
        assert_eq!(python.fit(peer, 1, 5).unwrap().steps, 5);
        python.inertia().unwrap()
    });
    assert!((ours / theirs - 1.0).abs() < 1e-6, "{ours}, {theirs}");
}
