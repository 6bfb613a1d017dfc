//! What is recorded: by a dispatcher and a queue, under the names that the dashboard asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use serde_json::Value;
use tercet_core::block::Format;
use tercet_core::scalar::Scalar;
use tercet_gpu::batch::executors::Assign;
use tercet_gpu::batch::{BatchOptions, Queue, Worker};
use tercet_gpu::dispatch::{Builder, Costs, Engine, Settings};
use tercet_gpu::observe::{FAMILIES, Family, Kind, LATENCIES, SIZES};

/// A recorder with the buckets of the dashboard.
fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new()
        .set_buckets(&SIZES)
        .and_then(|it| {
            it.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCIES)
        })
        .unwrap()
        .build_recorder()
}

/// The text of a little of everything.
fn recorded() -> String {
    let recorder = recorder();
    metrics::with_local_recorder(&recorder, || {
        let dispatcher = Builder::new(Settings::default())
            .costs(Costs::builtin(4))
            .device(|| Err::<Scalar, _>("none".to_owned()))
            .build();
        let mut floats = [0.0; 32];
        for engine in [Engine::Scalar, Engine::Simd, Engine::Simd] {
            let on = dispatcher.on(engine);
            on.decode(Format::Q8_0, &[1; 34], &mut floats).unwrap();
        }
        let short = dispatcher.decode(Format::Q8_0, &[1; 34], &mut floats[..3]);
        short.unwrap_err();

        let options = BatchOptions {
            name: "points",
            ..BatchOptions::default()
        };
        let work = Assign::new(Scalar, vec![0, 9], 1).unwrap();
        let queue = Queue::new(options, [Worker::new("one", work)]).unwrap();
        let tickets: Vec<_> = (0..5).map(|at| queue.submit(vec![at]).unwrap()).collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        // One that its work refuses.
        queue.submit(vec![1, 2]).unwrap().wait().unwrap_err();
        assert_eq!(queue.shutdown().answered, 5);
    });
    recorder.handle().render()
}

/// Lines of a text, each a name with labels and its value.
fn figures(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| line.starts_with("tercet_"));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn what_was_done_is_what_is_recorded() {
    let text = recorded();
    let figures = figures(&text);
    let simd = r#"{operation="decode",engine="simd"}"#;
    for (name, value) in [
        (&*format!("tercet_call_seconds_count{simd}"), 2.0),
        (&format!("tercet_elements_total{simd}"), 64.0),
        (&format!("tercet_bytes_total{simd}"), 2.0 * (34.0 + 128.0)),
        (&format!("tercet_predicted_seconds_count{simd}"), 2.0),
        ("tercet_refused_total", 1.0),
        (r#"tercet_queue_submitted_total{queue="points"}"#, 6.0),
        (
            r#"tercet_queue_ended_total{queue="points",outcome="answered"}"#,
            5.0,
        ),
        (
            r#"tercet_queue_ended_total{queue="points",outcome="failed"}"#,
            1.0,
        ),
        (r#"tercet_queue_wait_seconds_count{queue="points"}"#, 6.0),
        (r#"tercet_queue_batch_requests_sum{queue="points"}"#, 5.0),
        (r#"tercet_queue_depth{queue="points"}"#, 0.0),
        (r#"tercet_queue_capacity{queue="points"}"#, 4096.0),
    ] {
        assert_eq!(figures.get(name), Some(&value), "{name}\n{text}");
    }
    let most = figures[r#"tercet_queue_depth_high_water{queue="points"}"#];
    assert!((1.0..=5.0).contains(&most), "{most}");
    let seconds = figures[&*format!("tercet_call_seconds_sum{simd}")];
    assert!(seconds > 0.0 && seconds < 10.0, "{seconds}");
}

#[test]
fn every_family_is_recorded_and_described() {
    let text = recorded();
    let expected = (FAMILIES.iter()).filter(|family| !is_of_a_device(family.name));
    let mut names = BTreeSet::new();
    for Family {
        name,
        kind,
        help,
        labels,
        ..
    } in expected
    {
        names.insert(*name);
        let head = format!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name());
        assert!(text.contains(&head), "{head}{text}");
        let lines = text.lines().filter(|line| line.starts_with(name));
        let labelled =
            |line: &str| (labels.iter()).all(|label| line.contains(&format!("{label}=\"")));
        assert!(
            lines.clone().count() > 0 && lines.clone().all(labelled),
            "{name}"
        );
    }
    let recorded = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let recorded: BTreeSet<&str> = recorded
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(recorded, names);
}

fn is_of_a_device(name: &str) -> bool {
    name.starts_with("tercet_device_")
}

/// Every expression of the dashboard.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(
                members
                    .get("expr")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            members
                .values()
                .for_each(|member| expressions(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_what_is_recorded_and_for_all_of_it() {
    let dashboard: Value = serde_json::from_str(include_str!("../grafana/tercet.json")).unwrap();
    let mut asked = Vec::new();
    expressions(&dashboard, &mut asked);
    assert!(asked.len() > 30, "{}", asked.len());
    let text = recorded();
    let exported: BTreeSet<&str> = (text.lines().filter(|line| line.starts_with("tercet_")))
        .map(|line| line.split(['{', ' ']).next().unwrap())
        .collect();
    let mut families = BTreeSet::new();
    for expression in &asked {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("tercet_")).collect();
        assert!(!names.is_empty(), "{expression}");
        let mut labels = BTreeSet::from(["le"]);
        for name in names {
            let of = |family: &&Family| {
                let end = name.strip_prefix(family.name);
                match family.kind {
                    Kind::Histogram => matches!(end, Some("_bucket" | "_sum" | "_count")),
                    Kind::Counter | Kind::Gauge => end == Some(""),
                }
            };
            let Some(family) = FAMILIES.iter().find(of) else {
                // Without CUDA there are none of these.
                assert!(
                    cfg!(not(feature = "cuda")) && is_of_a_device(name),
                    "{name}"
                );
                continue;
            };
            assert!(exported.contains(name) || is_of_a_device(name), "{name}");
            families.insert(family.name);
            labels.extend(family.labels);
        }
        // What it adds up by are labels of what it adds up.
        for part in expression.split(" by (").skip(1) {
            let by = part.split(')').next().unwrap().split(',').map(str::trim);
            for label in by {
                assert!(
                    labels.contains(label) || labels.len() == 1,
                    "{label} in {expression}"
                );
            }
        }
    }
    let all: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(families, all);
}

#[test]
fn threads_that_record_at_once_lose_nothing() {
    let registry = recorder();
    let dispatcher = Builder::new(Settings::default())
        .costs(Costs::builtin(4))
        .device(|| Err::<Scalar, _>("none".to_owned()))
        .build();
    const CALLS: u64 = 5000;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                metrics::with_local_recorder(&registry, || {
                    let mut floats = [0.0; 32];
                    for _ in 0..CALLS {
                        dispatcher
                            .decode(Format::Q8_0, &[1; 34], &mut floats)
                            .unwrap();
                    }
                });
            });
        }
    });
    let text = registry.handle().render();
    let figures = figures(&text);
    let calls = figures
        .iter()
        .filter(|(name, _)| name.starts_with("tercet_call_seconds_count"));
    assert_eq!(
        calls.map(|(_, count)| count).sum::<f64>(),
        4.0 * CALLS as f64
    );
}
