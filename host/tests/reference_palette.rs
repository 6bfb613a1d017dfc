//! Palettes against scikit-learn's k-means, and their files read by NumPy from the documented layout alone.

use crate::support;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::runs::{floats, line, restored, run};
use crate::files::{Folder, Given, safetensors, weights};
use crate::support::data::Kind;
use tercet_core::palette::{Counts, Width, scratch_len};
use tercet_core::quant::{Grid, Groups, int8};
use tercet_core::scalar::Tensor;
use tercet_host::convert::{Per, Target};
use tercet_host::{QuantizeOptions, TensorFile};

/// The int8 codes of a whole tensor.
fn codes(values: &[f32]) -> Vec<i8> {
    let mut codes = vec![0; values.len()];
    let mut scale = [0.0];
    let groups = Groups::tensor(values.len()).unwrap();
    let mut tensor = Tensor::new(values, groups, &mut codes, &mut scale, &mut []).unwrap();
    int8::symmetric(&mut tensor).unwrap();
    codes
}

/// The least cost of so many entries.
fn ours(codes: &[i8], entries: usize) -> u64 {
    let grid = Grid {
        scale: 1.0,
        zero_point: 0,
        low: -127,
        high: 127,
    };
    let values: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
    let mut counts = Counts::EMPTY;
    counts.add(&values, &[], &grid).unwrap();
    let mut scratch = vec![0; scratch_len(256, entries)];
    counts
        .choose(&mut vec![0; entries], &mut scratch)
        .unwrap()
        .cost
}

#[test]
fn no_run_of_scikit_learn_ends_with_less_inertia() {
    let Some(python) = support::python_with(&["numpy", "sklearn", "safetensors"]) else {
        return;
    };
    let folder = Folder::new();
    let mut sets: Vec<(String, Vec<f32>)> =
        [Kind::Normal, Kind::Uniform, Kind::Laplace, Kind::Mixed]
            .into_iter()
            .map(|kind| (format!("{kind:?}"), kind.values(20_000, 127.0, 256)))
            .collect();
    sets.push((
        "digits' hidden layer".into(),
        floats(&classifier(), "hidden.weight"),
    ));
    let (mut problems, mut equal, mut furthest) = (0, 0, 0f64);
    for (name, values) in &sets {
        let codes = codes(values);
        let path = folder.file("codes");
        std::fs::write(&path, codes.iter().map(|&c| c as u8).collect::<Vec<_>>()).unwrap();
        let counts = ["2", "3", "4", "8", "16", "32"];
        let arguments = [&["inertia", path.to_str().unwrap()][..], &counts].concat();
        for line in support::run(&python, "palette.py", arguments).lines() {
            let mut words = line.split(' ');
            let k: usize = words.next().unwrap().parse().unwrap();
            let inertia: f64 = words.next().unwrap().parse().unwrap();
            let rounded: u64 = words.next().unwrap().parse().unwrap();
            let cost = ours(&codes, k);
            println!(
                "{name}, k = {k}: {cost}; scikit-learn {inertia:.1}, with integer centroids {rounded}"
            );
            assert!(cost <= rounded, "{name}, k = {k}");
            problems += 1;
            equal += usize::from(cost == rounded);
            furthest = furthest.max(cost as f64 / inertia.max(1.0));
        }
    }
    println!(
        "{problems} problems: scikit-learn's best of 11 runs, rounded, equals the optimum in {equal}; the optimum over \
         integers is at most {furthest:.4} of its inertia over floats"
    );
}

/// The classifier of the demo.
fn classifier() -> TensorFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/demo/digits.safetensors");
    TensorFile::open(path).unwrap()
}

/// Reads every palette of a file with NumPy: names and shapes, and the bytes of all values.
fn read(python: &Path, folder: &Folder, path: &Path) -> (Vec<String>, Vec<u8>) {
    let values = folder.file("values.f32");
    let arguments = ["read".as_ref(), path.as_os_str(), values.as_os_str()];
    let text = support::run(python, "palette.py", arguments);
    let lines = text.lines().map(str::to_owned).collect();
    (lines, std::fs::read(values).unwrap())
}

#[test]
fn files_read_by_the_documented_layout_have_equal_values() {
    let Some(python) = support::python_with(&["numpy", "safetensors"]) else {
        return;
    };
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let given = [
        Given::f32("a", &[10, 51], &weights(1, 510)),
        Given::f32("b", &[2, 3, 64], &weights(2, 384)),
        Given::f32("c", &[7, 1], &weights(3, 7)),
    ];
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    for width in Width::ALL {
        for per in [Per::Tensor, Per::Row, Per::Rows(4)] {
            let options = QuantizeOptions {
                per: Some(per),
                force: true,
                ..QuantizeOptions::new(Target::Palette(width))
            };
            let (_, output) = run(&input, &options, &folder.file("out.safetensors"));
            let (lines, theirs) = read(&python, &folder, output.path());
            assert_eq!(lines, ["a 10x51", "b 2x3x64", "c 7x1"]);
            let back = restored(
                &output,
                &folder.file(&format!("{width:?}-{per:?}.safetensors")),
            );
            let ours: Vec<u8> = ["a", "b", "c"]
                .iter()
                .flat_map(|name| back.get(name).unwrap().bytes.to_vec())
                .collect();
            assert!(theirs == ours, "{width:?} by {per:?}: values differ");
        }
    }
}

/// The embeddings that come with a Python package.
fn embeddings(python: &Path) -> PathBuf {
    let code =
        "import importlib.util as u; print(u.find_spec('wordllama').submodule_search_locations[0])";
    let output = Command::new(python).args(["-c", code]).output().unwrap();
    let folder = String::from_utf8(output.stdout).unwrap();
    Path::new(folder.trim()).join("weights/l2_supercat_256.safetensors")
}

#[test]
fn real_layers_lose_what_their_bits_say() {
    let mut models = vec![("digits", classifier())];
    let python = support::python_with(&["numpy", "wordllama"]);
    let path = python.map(|python| embeddings(&python));
    models.extend(path.map(|path| ("wordllama", TensorFile::open(path).unwrap())));
    let folder = Folder::new();
    for (name, model) in models {
        for per in [Per::Tensor, Per::Rows(32)] {
            let mut before = f64::INFINITY;
            for width in Width::ALL {
                let options = QuantizeOptions {
                    per: Some(per),
                    force: true,
                    ..QuantizeOptions::new(Target::Palette(width))
                };
                let (report, _) = run(&model, &options, &folder.file("out.safetensors"));
                let tensor = report
                    .tensors
                    .iter()
                    .find(|tensor| !tensor.beside.is_empty())
                    .unwrap();
                let error = tensor.relative_error.unwrap();
                let beside: Vec<String> = (tensor.beside.iter())
                    .map(|other| format!("{} {:.3e}", other.format, other.relative_error))
                    .collect();
                let (of, bits) = (line(&report, &tensor.name), width.bits());
                println!(
                    "{name} {}, palette:{bits} by {per:?}: {:.4} bits/weight, {error:.3e}; {}",
                    tensor.name,
                    of.bits_per_weight,
                    beside.join(", ")
                );
                // Another bit halves the steps, so the error falls to less than a half, down to that of the grid.
                let most = if bits < 7 { 0.5 } else { 1.0 };
                assert!(error <= before * most, "{bits} bits: {error}");
                before = error;
            }
        }
    }
}
