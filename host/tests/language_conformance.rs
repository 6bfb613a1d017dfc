//! The models of the conformance suite are what the writer makes of their seeds.

use std::path::Path;

use tercet_core::block::Format;
use tercet_host::DType;
use tercet_host::language::tiny;

/// A file of the suite; with TERCET_OVERWRITE=1 it is written anew.
fn check(name: &str, write: impl Fn(&Path)) {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../core/src/conformance/models")
        .join(name);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(&path);
    let made = std::fs::read(&path).unwrap();
    if std::env::var_os("TERCET_OVERWRITE").is_some() {
        std::fs::write(&committed, &made).unwrap();
    }
    assert!(std::fs::read(&committed).unwrap() == made, "{name} differs");
}

#[test]
fn the_suite_s_models_are_those_of_their_seeds() {
    check("ternary.gguf", |path| {
        tiny::bitnet(path, tiny::BITNET_64, 21, DType::Block(Format::Q2_0), false).unwrap();
    });
    check("llama.gguf", |path| {
        tiny::llama(path, tiny::LLAMA_32, 21, false).unwrap();
    });
}
