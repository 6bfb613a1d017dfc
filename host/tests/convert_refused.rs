//! What conversions choose, and what they refuse.

use crate::files::runs::{model, run};
use crate::files::{Folder, Given, safetensors};
use tercet_core::block::Format;
use tercet_core::palette::Width;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::convert::{Per, Scheme, Target};
use tercet_host::parallel::Threads;
use tercet_host::{Error, QuantizeOptions, TensorFile, quantize};

#[test]
fn globs_choose_and_a_glob_that_matches_nothing_is_refused() {
    let folder = Folder::new();
    let input = model(&folder);
    let options = |include: &[&str], exclude: &[&str]| QuantizeOptions {
        include: include.iter().map(|s| s.to_string()).collect(),
        exclude: exclude.iter().map(|s| s.to_string()).collect(),
        force: true,
        ..QuantizeOptions::new(Target::Blocks(Format::Tq2_0))
    };
    let out = folder.file("out.gguf");
    let quantized = |options: &QuantizeOptions| {
        let (report, _) = run(&input, options, &out);
        let done = report.tensors.iter().filter(|t| t.relative_error.is_some());
        done.map(|t| t.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(quantized(&options(&[], &[])), ["a.weight", "b.weight"]);
    assert_eq!(
        quantized(&options(&["a.*", "norm*"], &[])),
        ["a.weight", "norm.weight"]
    );
    assert_eq!(quantized(&options(&[], &["b.*"])), ["a.weight"]);
    let error = quantize(
        &mut Threads::default(),
        &input,
        &options(&[], &["bb.*"]),
        &out,
        &(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("`bb.*`"), "{error}");
    let error = quantize(
        &mut Threads::default(),
        &input,
        &options(&["["], &[]),
        &out,
        &(),
    )
    .unwrap_err();
    assert!(matches!(error, Error::Options { .. }), "{error}");
}

#[test]
fn a_value_that_is_not_finite_is_named_and_leaves_nothing() {
    let folder = Folder::new();
    for (at, bad) in [
        (0, f32::NAN),
        (40_000, f32::INFINITY),
        (99_999, f32::NEG_INFINITY),
    ] {
        let mut values = vec![0.5f32; 100_096];
        values[at] = bad;
        // A later one must not be the one that is named, whichever thread comes first.
        values[100_000] = f32::NAN;
        let path = folder.file("in.safetensors");
        safetensors(&path, &[Given::f32("x", &[391, 256], &values)], &[]);
        let input = TensorFile::open(&path).unwrap();
        for target in Target::ALL {
            for per in [Per::Tensor, Per::Row] {
                let grouped = matches!(target, Target::Int8 | Target::Ternary | Target::Palette(_));
                let gguf = !grouped && target != Target::BitnetHf;
                let mut options = QuantizeOptions::new(target);
                options.bits = (target == Target::Auto).then_some(4.0);
                options.per = grouped.then_some(per);
                if matches!(target, Target::BitnetHf | Target::I2S) {
                    // Rows must divide by four; language models are tested in `convert_i2_s`.
                    continue;
                }
                let out = folder.file(if gguf { "out.gguf" } else { "out.safetensors" });
                let error = quantize(&mut Threads::default(), &input, &options, &out, &())
                    .unwrap_err()
                    .to_string();
                let expected = format!("tensor `x`: value {at} is not finite");
                assert!(error.contains(&expected), "{target}: {error}");
                assert!(error.starts_with(&*path.to_string_lossy()), "{error}");
                assert_eq!(folder.names(), ["in.safetensors"]);
            }
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let input = model(&folder);
    let palette = Target::Palette(Width::new(4).unwrap());
    let plain = QuantizeOptions::new;
    let with = |target, change: fn(&mut QuantizeOptions)| {
        let mut options = QuantizeOptions::new(target);
        change(&mut options);
        options
    };
    let cases = [
        (
            plain(Target::Blocks(Format::Tq2_0)),
            "out.safetensors",
            "does not hold tq2_0; name the output *.gguf",
        ),
        (
            plain(Target::Int8),
            "out.gguf",
            "does not hold int8; name the output *.safetensors",
        ),
        (plain(Target::Int8), "out.npy", "does not hold int8"),
        (
            plain(Target::Blocks(Format::Tq2_0)),
            "out.bin",
            "must end in .gguf",
        ),
        (
            plain(Target::Blocks(Format::Q4K)),
            "out.gguf",
            "q4_k can be read but not written",
        ),
        (plain(Target::Auto), "out.gguf", "needs a number of bits"),
        (
            with(Target::Auto, |o| o.bits = Some(f64::NAN)),
            "out.gguf",
            "not a number of bits",
        ),
        (
            with(Target::Blocks(Format::Q8_0), |o| o.rule = Some(Rule::Twn)),
            "out.gguf",
            "rule does not apply to q8_0",
        ),
        (
            with(Target::Blocks(Format::Q4_0), |o| {
                o.scale = ScaleRule::LeastSquares
            }),
            "out.gguf",
            "scale rule",
        ),
        (
            with(Target::Blocks(Format::Tq2_0), |o| o.per = Some(Per::Row)),
            "out.gguf",
            "groups",
        ),
        (
            with(Target::Ternary, |o| o.grid = Scheme::Affine),
            "out.safetensors",
            "affine",
        ),
        (
            with(Target::Blocks(Format::Tq2_0), |o| o.bits = Some(2.0)),
            "out.gguf",
            "bits",
        ),
        (
            with(Target::Int8, |o| o.per = Some(Per::Block(100))),
            "out.safetensors",
            "do not divide",
        ),
        (
            with(Target::Int8, |o| o.per = Some(Per::Rows(2))),
            "out.safetensors",
            "a group of several rows does not apply to int8",
        ),
        (
            with(palette, |o| o.per = Some(Per::Block(64))),
            "out.safetensors",
            "a group of part of a row does not apply to palette:4",
        ),
        (
            with(palette, |o| o.rule = Some(Rule::Optimal)),
            "out.safetensors",
            "a ternary rule",
        ),
        (
            plain(palette),
            "out.gguf",
            "does not hold palette:4; name the output *.safetensors",
        ),
        (
            with(Target::Blocks(Format::Q8_0), |o| {
                o.importance = Some("in.safetensors".into())
            }),
            "out.gguf",
            "an importance does not apply to q8_0",
        ),
    ];
    for (options, out, expected) in cases {
        let error = quantize(
            &mut Threads::default(),
            &input,
            &options,
            &folder.file(out),
            &(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
        assert_eq!(folder.names(), ["in.safetensors"]);
    }
}

#[test]
fn names_of_what_is_read_only_say_so() {
    for format in Format::ALL {
        match (format.name().parse::<Target>(), format.can_encode()) {
            (Ok(target), true) => assert_eq!(target, Target::Blocks(format)),
            (Err(error), false) => {
                let error = error.to_string();
                assert!(error.contains("can be read but not written"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    let error = "q4_9".parse::<Target>().unwrap_err().to_string();
    assert!(error.contains("`q4_9` is not a format"), "{error}");
}
