//! What is recorded: by a dispatcher, a queue, a cache and a pool, under the names that the dashboard asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use serde_json::Value;
use tercet_core::block::Format;
use tercet_core::pool::Stats;
use tercet_core::scalar::Scalar;
use tercet_gpu::batch::executors::Assign;
use tercet_gpu::batch::{BatchOptions, Queue, Worker};
use tercet_gpu::cache::{Cache, CacheOptions, Computed, Tiers};
use tercet_gpu::dispatch::{Builder, Costs, Engine, Settings};
use tercet_gpu::observe::{FAMILIES, Family, Kind, Level, Registry};

/// A device whose memory is the host's.
struct Boxes;

impl Tiers for Boxes {
    type Device = Box<[u8]>;
    type Host = Vec<u8>;
    type Error = &'static str;

    fn upload(&self, host: &Vec<u8>) -> Result<Box<[u8]>, &'static str> {
        Ok(host.as_slice().into())
    }

    fn download(&self, device: &Box<[u8]>) -> Result<Vec<u8>, &'static str> {
        Ok(device.to_vec())
    }

    fn device_bytes(&self, device: &Box<[u8]>) -> usize {
        device.len()
    }

    fn host_bytes(&self, host: &Vec<u8>) -> usize {
        host.len()
    }

    fn uploaded_bytes(&self, host: &Vec<u8>) -> usize {
        host.len()
    }
}

/// A little of everything, told to a registry.
fn recorded() -> Registry {
    let registry = Registry::new();
    metrics::with_local_recorder(&registry, || {
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

        let options = CacheOptions {
            device_bytes: 20,
            host_bytes: 100,
            name: "weights",
            ..CacheOptions::default()
        };
        let cache = Cache::new(options, Boxes);
        for key in [1, 1, 2, 3, 1] {
            let value = || Ok::<_, ()>(Computed::Device(vec![key; 10].into()));
            cache.get_or_compute(&key, value).unwrap();
        }
        Level::pool("frames").show(&Stats {
            capacity: 8,
            in_use: 2,
            high_water: 7,
            failures: 3,
        });
    });
    registry
}

/// Lines of a text, each a name with labels and its value.
fn figures(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn what_was_done_is_what_is_recorded() {
    let text = recorded().to_prometheus();
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
        (
            r#"tercet_cache_gets_total{cache="weights",result="device_hit"}"#,
            1.0,
        ),
        (
            r#"tercet_cache_gets_total{cache="weights",result="host_hit"}"#,
            1.0,
        ),
        (
            r#"tercet_cache_gets_total{cache="weights",result="miss"}"#,
            3.0,
        ),
        (r#"tercet_cache_evictions_total{cache="weights"}"#, 2.0),
        (r#"tercet_cache_bytes{cache="weights",tier="device"}"#, 20.0),
        (
            r#"tercet_cache_bytes_high_water{cache="weights",tier="host"}"#,
            20.0,
        ),
        (
            r#"tercet_cache_capacity_bytes{cache="weights",tier="host"}"#,
            100.0,
        ),
        (r#"tercet_pool_high_water{pool="frames"}"#, 7.0),
        (r#"tercet_pool_refused_total{pool="frames"}"#, 3.0),
    ] {
        assert_eq!(figures.get(name), Some(&value), "{name}\n{text}");
    }
    let most = figures[r#"tercet_queue_depth_high_water{queue="points"}"#];
    assert!((1.0..=5.0).contains(&most), "{most}");
    let seconds = figures[&*format!("tercet_call_seconds_sum{simd}")];
    assert!(seconds > 0.0 && seconds < 10.0, "{seconds}");
}

#[test]
fn a_dispatcher_s_own_text_has_a_recorder_s_figures() {
    let registry = Registry::new();
    let dispatcher = Builder::new(Settings::default())
        .costs(Costs::builtin(4))
        .device(|| Err::<Scalar, _>("none".to_owned()))
        .build();
    metrics::with_local_recorder(&registry, || {
        let mut floats = [0.0; 32];
        for _ in 0..100 {
            dispatcher
                .decode(Format::Q8_0, &[1; 34], &mut floats)
                .unwrap();
        }
    });
    let (own, recorded) = (
        dispatcher.metrics().to_prometheus(),
        registry.to_prometheus(),
    );
    let (own, recorded) = (figures(&own), figures(&recorded));
    let mut compared = 0;
    for (name, value) in &own {
        // What was never refused was never recorded; sums of nothing neither.
        let Some(other) = recorded.get(name) else {
            assert_eq!(*value, 0.0, "{name}");
            continue;
        };
        assert!(
            (value - other).abs() <= 1e-6 * value.abs() + 1e-6,
            "{name}: {value}, {other}"
        );
        compared += 1;
    }
    assert!(compared >= 14 + 6 + 5, "{compared}");
}

#[test]
fn both_texts_name_and_describe_every_family() {
    let registry = recorded();
    let text = registry.to_prometheus();
    let json: Value = serde_json::from_str(&registry.to_json()).unwrap();
    let in_json: BTreeMap<&str, &Value> = json["families"]
        .as_array()
        .unwrap()
        .iter()
        .map(|family| (family["name"].as_str().unwrap(), family))
        .collect();
    let expected = FAMILIES
        .iter()
        .filter(|family| !is_of_a_device(family.name));
    let mut names = BTreeSet::new();
    for Family {
        name,
        kind,
        help,
        unit,
        labels,
    } in expected
    {
        names.insert(*name);
        assert!(
            text.contains(&format!(
                "# HELP {name} {help}\n# TYPE {name} {}\n",
                kind.name()
            )),
            "{name}"
        );
        let family = in_json[name];
        assert_eq!(
            (&family["help"], &family["unit"]),
            (&Value::from(*help), &Value::from(unit.as_str()))
        );
        let series = family["series"].as_array().unwrap();
        let found = series[0]["labels"].as_object().unwrap();
        assert!(
            !series.is_empty() && labels.iter().all(|label| found.contains_key(*label)),
            "{name}"
        );
    }
    let recorded: BTreeSet<&str> = in_json.keys().copied().collect();
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
    assert!(asked.len() > 40, "{}", asked.len());
    let text = recorded().to_prometheus();
    let exported: BTreeSet<&str> = (text.lines().filter(|line| !line.starts_with('#')))
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

/// Threads that record at once lose nothing, and the texts of a moment add up in themselves.
#[test]
fn counts_add_up_while_they_are_read() {
    let registry = Registry::new();
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
        for _ in 0..20 {
            let text = registry.to_prometheus();
            let figures = figures(&text);
            for (name, count) in &figures {
                if let Some((family, labels)) = name.split_once("_count{") {
                    let last = format!(
                        "{family}_bucket{{{},le=\"+Inf\"}}",
                        labels.trim_end_matches('}')
                    );
                    assert_eq!(figures[&*last], *count, "{name}");
                }
            }
        }
    });
    let text = registry.to_prometheus();
    let figures = figures(&text);
    let calls = figures
        .iter()
        .filter(|(name, _)| name.starts_with("tercet_call_seconds_count"));
    assert_eq!(
        calls.map(|(_, count)| count).sum::<f64>(),
        4.0 * CALLS as f64
    );
}
