//! An interrupted command leaves nothing behind.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::signals::interruptible;
use super::support::Folder;

/// Rows of the sparse inputs: 8 GiB as `f32`, so seconds of work.
const ROWS: u64 = 1 << 23;
const ROW: u64 = 256;

/// Writes so many rows of f32 zeros.
fn zeros(folder: &Folder, name: &str, rows: u64) {
    let bytes = rows * ROW * 4;
    let header =
        format!(r#"{{"w":{{"dtype":"F32","shape":[{rows},{ROW}],"data_offsets":[0,{bytes}]}}}}"#);
    sparse(folder, name, &header, bytes);
}

/// Writes a safetensors file of zeros that takes no room on the disk.
fn sparse(folder: &Folder, name: &str, header: &str, bytes: u64) {
    folder.safetensors_raw(name, header, 0);
    let file = File::options().write(true).open(folder.path(name)).unwrap();
    file.set_len(8 + header.len() as u64 + bytes).unwrap();
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

/// Waits until a command has begun its output, and sends it a signal.
fn send(folder: &Folder, child: &mut Child, signal: &str) {
    let part = |name: &String| name.starts_with(".tercet-") && name.ends_with(".part");
    let started = Instant::now();
    while !names(folder).iter().any(part) {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no output was begun"
        );
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        sleep(Duration::from_millis(1));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Interrupts a command that has begun its output, and looks at what it leaves.
fn interrupted(folder: &Folder, arguments: &[&str], signal: &str) {
    let before = names(folder).len();
    let mut command = folder.command(arguments);
    command.stderr(Stdio::piped());
    let mut child = interruptible(&mut command).spawn().unwrap();
    send(folder, &mut child, signal);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: interrupted; nothing half-written is left\n"
    );
    assert_eq!(names(folder).len(), before, "{:?}", names(folder));
}

#[test]
fn an_interrupted_quantize_leaves_nothing() {
    let folder = Folder::new();
    zeros(&folder, "in.safetensors", ROWS);
    let blocks = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "tq2_0",
    ];
    interrupted(&folder, &blocks, "-INT");
    interrupted(&folder, &blocks, "-TERM");
    // One group of all values, which are read several times before the first byte is written.
    let ternary = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.safetensors",
        "--to",
        "ternary",
    ];
    interrupted(&folder, &ternary, "-INT");
}

#[test]
fn an_interrupted_dequantize_leaves_nothing() {
    let folder = Folder::new();
    let codes = ROWS * ROW;
    let bytes = codes + 4;
    let header = format!(
        r#"{{"w":{{"dtype":"I8","shape":[{ROWS},{ROW}],"data_offsets":[0,{codes}]}},"w_scale":{{"dtype":"F32","shape":[1],"data_offsets":[{codes},{bytes}]}}}}"#
    );
    sparse(&folder, "in.safetensors", &header, bytes);
    let arguments = [
        "dequantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "f16",
    ];
    interrupted(&folder, &arguments, "-INT");
}

#[test]
fn an_output_that_was_there_survives_an_interrupt() {
    let folder = Folder::new();
    zeros(&folder, "in.safetensors", ROWS);
    fs::write(folder.path("out.gguf"), "precious").unwrap();
    let arguments = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
        "--force",
    ];
    interrupted(&folder, &arguments, "-INT");
    assert_eq!(fs::read(folder.path("out.gguf")).unwrap(), b"precious");
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let folder = Folder::new();
    zeros(&folder, "in.safetensors", ROWS / 8);
    let script =
        r#"trap '' HUP; exec "$0" quantize in.safetensors -o out.gguf --to tq2_0 --threads 1"#;
    let mut command = Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_tercet")])
        .current_dir(folder.path(""))
        .stdout(Stdio::null());
    let mut child = interruptible(&mut command).spawn().unwrap();
    send(&folder, &mut child, "-HUP");
    assert!(child.wait().unwrap().success());
    assert!(folder.path("out.gguf").is_file());
}
