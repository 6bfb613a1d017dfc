//! Outputs are whole or not there, and never an input.

use std::path::{Path, PathBuf};

use crate::files::{Folder, Given, safetensors, weights};
use tercet_core::block::Format;
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::{Error, QuantizeOptions, TensorFile, quantize};

fn input(folder: &Folder, rows: usize) -> PathBuf {
    let path = folder.file("in.safetensors");
    safetensors(
        &path,
        &[Given::f32("w", &[rows, 256], &weights(1, rows * 256))],
        &[],
    );
    path
}

fn attempt(input: &Path, out: &Path, target: Target, force: bool) -> Result<(), Error> {
    let model = TensorFile::open(input)?;
    let options = QuantizeOptions {
        force,
        ..QuantizeOptions::new(target)
    };
    quantize(&mut Threads::default(), &model, &options, out, &()).map(|_| ())
}

#[test]
fn an_output_that_exists_is_kept_unless_forced() {
    let folder = Folder::new();
    let input = input(&folder, 4);
    let out = folder.file("out.gguf");
    std::fs::write(&out, "precious").unwrap();
    let error = attempt(&input, &out, Target::Blocks(Format::Tq2_0), false).unwrap_err();
    assert!(matches!(error, Error::OutputExists { .. }), "{error}");
    assert_eq!(std::fs::read(&out).unwrap(), b"precious");
    attempt(&input, &out, Target::Blocks(Format::Tq2_0), true).unwrap();
    assert!(std::fs::read(&out).unwrap().starts_with(b"GGUF"));
    assert_eq!(folder.names(), ["in.safetensors", "out.gguf"]);
}

#[test]
fn a_folder_and_a_device_are_no_outputs() {
    let folder = Folder::new();
    let input = input(&folder, 4);
    let out = folder.file("out.gguf");
    std::fs::create_dir(&out).unwrap();
    let error = attempt(&input, &out, Target::Blocks(Format::Tq2_0), true)
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let error = attempt(
        &input,
        &folder.file("gone/out.gguf"),
        Target::Blocks(Format::Tq2_0),
        true,
    )
    .unwrap_err();
    assert!(
        matches!(
            &error,
            Error::Io {
                action: "create",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(folder.names(), ["in.safetensors", "out.gguf"]);
}

#[cfg(unix)]
#[test]
fn an_output_that_is_the_input_is_refused_under_every_name() {
    let folder = Folder::new();
    let input = input(&folder, 4);
    let before = std::fs::read(&input).unwrap();
    let symbolic = folder.file("symbolic.safetensors");
    std::os::unix::fs::symlink(&input, &symbolic).unwrap();
    let hard = folder.file("hard.safetensors");
    std::fs::hard_link(&input, &hard).unwrap();
    std::fs::create_dir(folder.file("sub")).unwrap();
    let around = folder.file("sub/../in.safetensors");
    for (from, to) in [
        (&input, &input),
        (&input, &symbolic),
        (&symbolic, &input),
        (&input, &hard),
        (&input, &around),
    ] {
        let error = attempt(from, to, Target::Int8, true).unwrap_err();
        assert!(matches!(error, Error::OutputIsInput { .. }), "{error}");
        assert_eq!(std::fs::read(&input).unwrap(), before);
    }
}

#[test]
fn a_shard_is_an_input_too() {
    let folder = Folder::new();
    let given = [Given::f32("w", &[1, 256], &weights(1, 256))];
    safetensors(&folder.file("m-1.safetensors"), &given, &[]);
    let index = folder.file("m.safetensors.index.json");
    std::fs::write(&index, r#"{"weight_map": {"w": "m-1.safetensors"}}"#).unwrap();
    let error = attempt(&index, &folder.file("m-1.safetensors"), Target::Int8, true).unwrap_err();
    assert!(matches!(error, Error::OutputIsInput { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn an_output_has_the_permissions_of_a_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let input = input(&folder, 4);
    let out = folder.file("out.gguf");
    attempt(&input, &out, Target::Blocks(Format::Tq2_0), false).unwrap();
    let plain = folder.file("plain");
    std::fs::write(&plain, "").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(&out), mode(&plain));
}

/// A file-size limit makes the system refuse a write in the middle of the output, as a full disk does. The test
/// runs itself again under that limit, since a limit holds for a whole process.
#[cfg(unix)]
#[test]
fn a_write_that_fails_is_named_and_leaves_nothing() {
    const FOLDER: &str = "TERCET_TEST_LIMITED_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = PathBuf::from(folder);
        let (input, out) = (folder.join("in.safetensors"), folder.join("out"));
        for (target, extension) in [
            (Target::Blocks(Format::Q8_0), "gguf"),
            (Target::Int8, "safetensors"),
        ] {
            let out = out.with_extension(extension);
            let error = attempt(&input, &out, target, false).unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::Io {
                        action: "write",
                        ..
                    }
                ),
                "{error}"
            );
            assert!(
                error.to_string().starts_with(&*out.to_string_lossy()),
                "{error}"
            );
        }
        return;
    }
    let folder = Folder::new();
    input(&folder, 4096);
    // The signal of the limit must not end the process; an ignored signal stays ignored in what `exec` starts.
    let script = "trap '' XFSZ; ulimit -f 512; exec \"$0\" --exact output::a_write_that_fails_is_named_and_leaves_nothing";
    let status = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .status()
        .expect("a shell");
    assert!(status.success());
    assert_eq!(folder.names(), ["in.safetensors"]);
}
