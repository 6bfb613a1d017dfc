//! `tercet verify`.

use tercet_host::simd::Backend;

use super::support::{Folder, fields};

#[test]
fn every_engine_of_this_machine_gives_the_released_digests() {
    let folder = Folder::new();
    let found = folder.json(&["verify", "--json"]);
    assert_eq!(
        fields(&found),
        ["agree", "digests", "engines", "no_gpu", "version"]
    );
    assert_eq!(found["agree"], true);
    let engines = found["engines"].as_array().unwrap();
    let names: Vec<_> = engines
        .iter()
        .map(|it| it["engine"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "core, scalar");
    for backend in Backend::all() {
        assert!(
            names.contains(&format!("{backend}, all threads").as_str()),
            "{names:?}"
        );
    }
    assert!(names.contains(&format!("{}, one thread", Backend::best()).as_str()));
    for engine in engines {
        assert_eq!(engine["operations"], engine["agreed"], "{engine}");
        assert!(engine["operations"].as_u64().unwrap() >= 81, "{engine}");
        assert_eq!(engine["differ"], serde_json::json!([]));
    }
    let digests = found["digests"].as_array().unwrap();
    let released = tercet_core::conformance::entries();
    for (name, digest) in released {
        let mut of = digests.iter().filter(|it| it["operation"] == name);
        // Networks and the like run where their room is; every digest that was run is in the table.
        if let Some(of) = of.next() {
            assert_eq!(of["expected"], format!("{digest:016x}"), "{name}");
        }
    }
    assert!(digests.len() > 100, "{}", digests.len());

    let text = folder.ok(&["verify", "--digests"]);
    assert!(text.contains("all digests are the released ones"), "{text}");
    let (name, digest) = tercet_core::conformance::entries().next().unwrap();
    let line = text.lines().find(|line| line.starts_with(name));
    assert!(
        line.is_some_and(|line| line.contains(&format!("{digest:016x}"))),
        "{text}"
    );
}
