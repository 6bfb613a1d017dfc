//! Checks that the committed header is the one that cbindgen makes of the sources, and that its version is the
//! library's.

use std::{env, fs};

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include/tercet.h");

#[test]
fn the_header_is_that_of_the_sources() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_file(format!("{root}/cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    // In the order of a reader.
    for part in [
        "version", "status", "quantize", "assign", "online", "kmeans", "network", "arena", "digest",
    ] {
        builder = builder.with_src(format!("{root}/src/{part}.rs"));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if env::var_os("TERCET_OVERWRITE").is_some() {
        fs::write(HEADER, &made).unwrap();
    }
    let committed = fs::read_to_string(HEADER).unwrap_or_default();
    assert!(
        made == committed,
        "include/tercet.h is not what cbindgen makes; TERCET_OVERWRITE=1 renews it"
    );
}

#[test]
fn the_version_is_the_package_s() {
    let [major, minor, patch] = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ]
    .map(|number| number.parse::<u32>().unwrap());
    assert_eq!(tercet_c::tercet_version(), major << 16 | minor << 8 | patch);
}
