//! Checks that peers do the same work as Tercet, if a Python has them (`TERCET_PYTHON`).

mod peers_cuda;
#[path = "../../gpu/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use tercet_benches::peers::contest::{Effort, Peers, Row, events, measure};
use tercet_benches::peers::process::Programs;

/// One turn each: the times are meaningless.
const EFFORT: Effort = Effort {
    rounds: 1,
    turn: 0.0,
    seconds: 0.0,
};

/// Returns the rows of the only event whose name contains the word.
fn rows(word: &str, python: Option<PathBuf>) -> Vec<Row> {
    let mut chosen = events(true, None);
    chosen.retain(|event| event.name.contains(word));
    let event = chosen.pop().expect("an event of that name");
    assert!(chosen.is_empty(), "{word} is not one event");
    let folder = std::env::temp_dir().join(format!("tercet-peers-{}-{word}", std::process::id()));
    let case = (event.case)(&folder).unwrap();
    let programs = Programs { python, rust: None };
    let rows = measure(case, &mut Peers::new(programs), EFFORT).unwrap();
    assert!(!Path::new(&folder).exists(), "inputs stay behind");
    rows
}

/// Lets each peer of the event do the same work as Tercet, if the modules can be imported.
fn same(word: &str, modules: &[&str], peers: &[&str]) {
    let Some(python) = support::host::python_with(&[&["numpy"], modules].concat()) else {
        return;
    };
    for row in rows(word, Some(python)) {
        assert!(row.refused.is_empty(), "{:?}", row.refused);
        let found: Vec<&str> = row.peers.iter().map(|peer| &*peer.0).collect();
        for peer in peers {
            assert!(found.contains(peer), "{found:?}");
        }
    }
}

#[test]
fn tercet_runs_alone_where_there_is_no_python() {
    for row in rows("dot of int8, 100K×384", None) {
        assert!(row.peers.is_empty() && row.refused.is_empty());
        assert!(row.seconds > 0.0);
    }
}

#[test]
fn numpy_quantizes_alike() {
    same("absmean, 1M", &[], &["NumPy", "NumPy, out="]);
}

#[test]
fn onnxruntime_gives_the_same_codes() {
    let modules = ["onnx", "onnxruntime"];
    same("1K, 1M", &modules, &["onnxruntime, scales given"]);
}

#[test]
fn the_gguf_package_encodes_the_same_bytes() {
    same("encode tq2_0", &["gguf"], &["gguf"]);
}

#[test]
fn scikit_learn_and_faiss_cluster_alike() {
    let modules = ["sklearn", "threadpoolctl", "faiss"];
    same("10K×100", &modules, &["scikit-learn", "faiss"]);
}

#[test]
fn numpy_and_faiss_find_the_same_rows() {
    let peers = ["NumPy, f32 copy", "faiss, signed bytes"];
    same("dot of int8, 100K×384", &["faiss"], &peers);
}
