//! The chosen engine, by size, wish, profile and device.

use tercet_core::scalar::Scalar;
use tercet_host::simd::Backend;

use super::{with_costs, with_device, without_device};
use crate::dispatch::tune::{Key, Tuning};
use crate::dispatch::{
    Builder, Cost, Costs, Dispatcher, Engine, Exclusion, Job, Location, Operation, Preference,
    Profile, Settings, TuningFile,
};

fn decode(elements: u64) -> Job {
    Job::each(Operation::Decode, elements, elements, 4 * elements)
}

/// Much work for each copied byte.
fn products(rows: usize) -> Job {
    Job::products(4096, 4096, 4096 * 4096, rows)
}

fn settings() -> Settings {
    Settings::default()
}

#[test]
fn small_jobs_stay_on_one_thread_large_ones_take_all_and_heavy_ones_the_device() {
    let (dispatcher, _) = with_device(settings());
    let choice = |job: &Job| dispatcher.choice(job).unwrap();
    assert_eq!(choice(&decode(64)), Engine::Simd);
    assert_eq!(choice(&decode(4096)), Engine::Simd);
    assert_eq!(choice(&decode(4 << 20)), Engine::Threads);
    // Copies cost more than a pass over the data on the host.
    assert_eq!(choice(&decode(1 << 30)), Engine::Threads);
    let resident = decode(4 << 20).at(Location::Device);
    assert_eq!(choice(&resident), Engine::Cuda);
    // The first such call already saves a third of a second.
    assert_eq!(choice(&products(16384)), Engine::Cuda);
}

#[test]
fn what_a_device_has_no_step_for_stays_with_the_processor_whoever_is_wished() {
    let job = products(16384).at(Location::Processor);
    let here = |settings: Settings| {
        let (dispatcher, _) = with_device(settings);
        assert_eq!(dispatcher.choice(&products(16384)), Some(Engine::Cuda));
        assert_ne!(dispatcher.choice(&job), Some(Engine::Cuda));
        let explained = dispatcher.explain(&job).to_string();
        assert!(
            explained.contains("the device has no kernel for it"),
            "{explained}"
        );
        // A caller that asks for the device gets it tried, and the reason if it fails.
        let forced = dispatcher.on(Engine::Cuda);
        assert_eq!(forced.choice(&job), Some(Engine::Cuda));
    };
    here(settings());
    here(Settings {
        wish: Preference::Cuda,
        ..settings()
    });
    here(Settings {
        prefer_gpu: true,
        ..settings()
    });
    here(Settings {
        overrides: [(Operation::Matmul, Engine::Cuda)].into(),
        ..settings()
    });
}

/// The explained engine is the one that runs: only one of the processor's engines takes files tile by tile.
#[test]
fn flows_over_files_are_offered_to_all_threads_and_the_device_alone() {
    let flow = decode(64).in_flow();
    let of = |settings: Settings| with_device(settings).0;
    for profile in Profile::ALL {
        let dispatcher = of(Settings {
            profile,
            ..settings()
        });
        assert_eq!(dispatcher.choice(&flow), Some(profile.tiling()));
        for reason in dispatcher.explain(&flow).candidates {
            let tiled = reason.why == "files are read, coded and written by all threads";
            let others = ![profile.tiling(), Engine::Cuda].contains(&reason.engine);
            let here = matches!(profile, Profile::Auto | Profile::Cpu | Profile::Gpu);
            assert_eq!(tiled, others && here, "{profile:?}: {reason:?}");
        }
    }
    // Also if the settings ask for another engine.
    let dispatcher = of(Settings {
        overrides: [(Operation::Decode, Engine::Simd)].into(),
        ..settings()
    });
    assert_eq!(dispatcher.choice(&flow), Some(Engine::Threads));
    assert_eq!(dispatcher.on(Engine::Simd).choice(&flow), None);
    assert_eq!(
        dispatcher.on(Engine::Cuda).choice(&flow),
        Some(Engine::Cuda)
    );
    // Also without any known cost.
    let (dispatcher, _) = with_costs(settings(), Costs::none());
    assert_eq!(dispatcher.choice(&flow), Some(Engine::Threads));
    assert_eq!(dispatcher.choice(&decode(64)), Some(Engine::Scalar));
    // Any engine can do calls that an engine was made for.
    let dispatcher = of(settings());
    let product = products(1);
    let alike = dispatcher.choice(&product);
    assert_eq!(dispatcher.choice(&product.in_flow()), alike);
}

#[test]
fn a_device_is_opened_once_calls_would_have_saved_as_much() {
    let mut costs = Costs::none();
    // 0.1 s here, 0.02 s there.
    costs.set(
        Operation::Decode,
        Engine::Simd,
        Cost::constant(0.1, 1e18, 1e18),
    );
    costs.set(
        Operation::Decode,
        Engine::Cuda,
        Cost::constant(0.02, 1e18, 1e18),
    );
    let (dispatcher, told) = with_costs(settings(), costs);
    let mut out = [0.0; 32];
    let mut engines = Vec::new();
    for _ in 0..5 {
        let decoded = dispatcher.decode(tercet_core::block::Format::Q8_0, &[0; 34], &mut out);
        decoded.unwrap();
        let metrics = dispatcher.metrics();
        engines.push(
            metrics
                .of(Operation::Decode, Engine::Cuda)
                .map_or(0, |it| it.calls),
        );
    }
    // Sums saved: 0.08, 0.16, 0.24, 0.32. The fourth call opens the device.
    assert_eq!(engines, [0, 0, 0, 1, 2]);
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
}

#[test]
fn near_ties_settle_by_order_and_farther_ones_by_time() {
    for (simd, threads, chosen) in [
        (1.0, 1.05, Engine::Simd),
        (1.05, 1.0, Engine::Simd),
        (1.2, 1.0, Engine::Threads),
    ] {
        let mut costs = Costs::none();
        costs.set(
            Operation::Search,
            Engine::Simd,
            Cost::constant(simd, 1e18, 1e18),
        );
        costs.set(
            Operation::Search,
            Engine::Threads,
            Cost::constant(threads, 1e18, 1e18),
        );
        let (dispatcher, _) = with_costs(settings(), costs);
        let job = Job::among(100, 10, 1, 1, 1);
        assert_eq!(dispatcher.choice(&job), Some(chosen), "{simd} {threads}");
    }
}

#[test]
fn profiles_have_their_engines() {
    let jobs = [decode(64), decode(4 << 20), products(16384)];
    let of = |profile| {
        let (dispatcher, _) = with_device(Settings {
            profile,
            ..settings()
        });
        jobs.map(|job| dispatcher.choice(&job).unwrap())
    };
    assert_eq!(of(Profile::Development), [Engine::Simd; 3]);
    assert_eq!(of(Profile::Edge), [Engine::Scalar; 3]);
    assert_eq!(
        of(Profile::Cpu),
        [Engine::Simd, Engine::Threads, Engine::Threads]
    );
    assert_eq!(of(Profile::Gpu)[2], Engine::Cuda);
}

#[test]
fn wishes_and_overrides_outdo_costs() {
    let jobs = [decode(64), products(16384)];
    let of = |settings| {
        let (dispatcher, _) = with_device(settings);
        jobs.map(|job| dispatcher.choice(&job).unwrap())
    };
    let wish = |wish| Settings { wish, ..settings() };
    assert_eq!(of(wish(Preference::Cuda)), [Engine::Cuda; 2]);
    let best = Preference::Set(Backend::best());
    if best != Preference::Set(Backend::SCALAR) {
        assert_eq!(of(wish(best)), [Engine::Simd, Engine::Threads]);
    }
    assert_eq!(
        of(wish(Preference::Set(Backend::SCALAR))),
        [Engine::Scalar, Engine::Threads]
    );
    let overridden = settings().with_engine(Operation::Decode, Engine::Threads);
    assert_eq!(of(overridden), [Engine::Threads, Engine::Cuda]);
    let large = Settings {
        min_size_for_gpu: 1 << 40,
        ..settings()
    };
    assert_eq!(of(large)[1], Engine::Threads);
}

#[test]
fn a_preferred_device_may_take_twice_as_long() {
    for (device, chosen) in [(1.9, Engine::Cuda), (2.1, Engine::Simd)] {
        let mut costs = Costs::none();
        costs.set(
            Operation::Decode,
            Engine::Simd,
            Cost::constant(1.0, 1e18, 1e18),
        );
        costs.set(
            Operation::Decode,
            Engine::Cuda,
            Cost::constant(device, 1e18, 1e18),
        );
        let preferring = Settings {
            prefer_gpu: true,
            ..settings()
        };
        let (dispatcher, _) = with_costs(preferring, costs);
        assert_eq!(dispatcher.choice(&decode(10)), Some(chosen));
    }
}

#[test]
fn without_a_device_it_is_told_once_and_the_processor_goes_on() {
    let wish = Settings {
        wish: Preference::Cuda,
        ..settings()
    };
    let (dispatcher, told) = without_device(wish);
    let mut out = [1.0; 32];
    for _ in 0..3 {
        let decoded = dispatcher.decode(tercet_core::block::Format::Q8_0, &[0; 34], &mut out);
        decoded.unwrap();
    }
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].to_string(),
        "no GPU: not in this test; the CPU does all work"
    );
    let error =
        dispatcher
            .on(Engine::Cuda)
            .decode(tercet_core::block::Format::Q8_0, &[0; 34], &mut out);
    assert_eq!(
        error.unwrap_err().to_string(),
        "cuda is not available: not in this test"
    );
}

#[test]
fn an_explanation_names_every_candidate_and_why_it_lost() {
    let (dispatcher, _) = with_device(Settings {
        min_size_for_gpu: 1 << 30,
        ..settings()
    });
    let explained = dispatcher.explain(&decode(4 << 20));
    assert_eq!(explained.chosen, Some(Engine::Threads));
    let engines: Vec<_> = explained.candidates.iter().map(|it| it.engine).collect();
    assert_eq!(engines[0], Engine::Threads);
    for engine in Engine::ALL {
        assert!(engines.contains(&engine));
    }
    let text = explained.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(
        lines[0].starts_with("decode: 4194304 elements, 20971520 bytes"),
        "{text}"
    );
    assert!(text.contains("chosen: the fastest"), "{text}");
    assert!(text.contains(" times as long"), "{text}");
    assert!(text.contains("fewer than 1073741824 elements"), "{text}");
    // Columns end at the same place as their heads.
    let ends = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
    assert!(ends(lines[1], "predicted").is_some());
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["chosen"], "threads");
    assert_eq!(json["candidates"][0]["bound"], "memory");
    assert!(
        json["candidates"][0]["prediction"]["memory"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert_eq!(
        serde_json::to_value(Exclusion::TooSmall(4)).unwrap()["too_small"],
        4
    );
}

/// A prompt in products of many rows, then a text of so many tokens.
fn text(tokens: u64) -> Job {
    let token = Job::products(512, 512, 512 * 512, 1);
    token
        .repeated(tokens, "tokens")
        .after(&Job::products(512, 512, 512 * 512, 64))
}

/// Costs of an engine that is fast in prompts, of one that is fast in texts, and of a device that is so in both.
fn prompts_and_texts() -> Costs {
    let mut costs = Costs::none();
    for (engine, prompt, token) in [
        (Engine::Threads, 1e-3, 1e-3),
        (Engine::Simd, 8.3e-3, 4e-4),
        (Engine::Cuda, 1e-4, 1e-4),
    ] {
        // Launches alone.
        costs.set(
            Operation::Matmul,
            engine,
            Cost::constant(prompt, 1e18, 1e18),
        );
        costs.set(Operation::Matvec, engine, Cost::constant(token, 1e18, 1e18));
    }
    costs
}

#[test]
fn a_text_is_chosen_for_as_a_whole_and_told_from_how_many_tokens_another_pays() {
    let settings = Settings {
        tolerance: 0.0,
        ..settings()
    };
    let (dispatcher, _) = with_costs(settings, prompts_and_texts());
    let pays = |tokens: u64, engine: Engine| {
        let explained = dispatcher.explain(&text(tokens));
        let all = explained.candidates.iter();
        let found = all
            .clone()
            .find(|it| it.engine == engine)
            .unwrap()
            .pays_from;
        let (line, words) = (
            explained.to_string(),
            found.map(|it| format!("pays from {it} tokens on")),
        );
        assert!(words.is_none_or(|words| line.contains(&words)), "{line}");
        (explained.chosen, found)
    };
    // 7.3 ms more for a prompt, 0.6 ms less for a token; the device takes 0.3 s to open.
    let (threads, simd, cuda) = (Engine::Threads, Engine::Simd, Engine::Cuda);
    assert_eq!(pays(1, simd), (Some(threads), Some(13)));
    assert_eq!(pays(12, simd), (Some(threads), Some(13)));
    assert_eq!(pays(13, simd), (Some(simd), None));
    assert_eq!(pays(13, threads), (Some(simd), None));
    assert_eq!(pays(12, cuda), (Some(threads), Some(333)));
    assert_eq!(pays(100, cuda), (Some(simd), Some(973)));
    assert_eq!(pays(972, cuda), (Some(simd), Some(973)));
    assert_eq!(pays(973, cuda), (Some(cuda), None));
}

#[test]
fn an_explanation_shows_both_phases_of_a_text() {
    let (dispatcher, _) = with_costs(settings(), prompts_and_texts());
    let explained = dispatcher.explain(&text(5));
    let [first, own] = explained.candidates[0].phases.unwrap();
    assert!((first.total() - 1e-3).abs() < 1e-9 && (own.total() - 5e-3).abs() < 1e-9);
    let shown = explained.to_string();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(
        lines[0],
        "first matmul: 262144 elements, 425984 bytes, 16777216 steps, 64 items"
    );
    assert!(
        lines[1].starts_with(
            "then matvec: 262144 elements, 264704 bytes, 262144 steps, 512 items, 5 tokens; "
        ),
        "{shown}"
    );
    assert!(
        lines[3].starts_with("threads (") && lines[3].contains("6.00 ms"),
        "{shown}"
    );
    assert!(
        lines[4].starts_with("  matmul") && lines[4].contains("1.00 ms"),
        "{shown}"
    );
    assert!(
        lines[5].starts_with("  matvec") && lines[5].contains("5.00 ms"),
        "{shown}"
    );
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["job"]["before"]["operation"], "matmul");
    // Counted as one call, with the amounts of both.
    let done = dispatcher
        .run(text(5), |_| Ok(()))
        .map(|()| dispatcher.metrics());
    let row = &done.unwrap().engines[0];
    assert_eq!((row.calls, row.work), (1, 16_777_216 + 5 * 262_144));
}

/// Returns a dispatcher that asks for an instruction set, with costs as measured with the best one.
fn asking(backend: Backend) -> Dispatcher<Scalar> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut costs = Costs::none();
    for (engine, rate) in [
        (Engine::Scalar, 1e9),
        (Engine::Simd, 1e10),
        (Engine::Threads, 2e10),
    ] {
        costs.set(Operation::Matmul, engine, Cost::constant(1e-6, 1e15, rate));
    }
    let tuning = Tuning {
        key: Key::here(),
        device: None,
        made: "2026-11-27".to_owned(),
        costs,
    };
    tuning.write(file.path()).unwrap();
    let settings = Settings {
        wish: Preference::Set(backend),
        tuning: TuningFile::At(file.path().to_owned()),
        ..settings()
    };
    Builder::new(settings)
        .device(|| Err::<Scalar, _>("none in this test".to_owned()))
        .build()
}

#[test]
fn costs_of_the_best_instruction_set_are_not_taken_for_those_of_another() {
    let job = Job {
        work: 1 << 30,
        ..Job::products(1024, 1024, 1 << 20, 1024)
    };
    let seconds = |dispatcher: &Dispatcher<Scalar>, engine| {
        let all = dispatcher.explain(&job).candidates;
        let found = all.into_iter().find(|it| it.engine == engine);
        found.unwrap().seconds.unwrap()
    };
    let is = |seconds: f64, expected: f64| assert!((seconds / expected - 1.0).abs() < 0.01);
    let second = f64::from(1 << 30) / 1e9;
    let best = Backend::best();
    is(seconds(&asking(best), Engine::Threads), second / 20.0);
    if best == Backend::SCALAR {
        return;
    }
    let scalar = asking(Backend::SCALAR);
    let threads = rayon::current_num_threads() as f64;
    is(seconds(&scalar, Engine::Scalar), second);
    is(seconds(&scalar, Engine::Simd), second);
    is(seconds(&scalar, Engine::Threads), second / threads);
    assert_eq!(scalar.explain(&job).backend, "scalar");

    // It says what would be faster, and why that was not done.
    let engine = scalar.explain(&job).chosen.unwrap();
    scalar.run(job, |_| Ok(())).unwrap();
    let first = scalar.recommend()[0].to_string();
    let expected = format!("matmul: threads with {} is predicted to take ", best.isa());
    assert!(first.starts_with(&expected), "{first}");
    let expected = format!(" % of the time of {engine}; scalar was asked for");
    assert!(first.ends_with(&expected), "{first}");

    // Costs of a third set were not measured.
    let others = [Backend::SCALAR, best];
    if let Some(other) = Backend::all().find(|it| !others.contains(it)) {
        let other = asking(other);
        let builtin = Costs::builtin(rayon::current_num_threads());
        for engine in [Engine::Simd, Engine::Threads] {
            let of = |costs: &Costs| costs.get(Operation::Matmul, engine).cloned();
            assert_eq!(of(other.costs()), of(&builtin));
        }
        assert!(other.origin().contains("built-in"), "{}", other.origin());
    }
}
