//! Runs this program under callgrind, and reads the counts.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns the output of `counts run` with a backend, and the instructions of each of its cases, in order.
///
/// Only instructions of this program count: the C library chooses its copies and fills by processor, and its allocator
/// is not ours.
pub(crate) fn count(backend: &str) -> Result<(String, Vec<u64>), Box<dyn Error>> {
    let program = env::current_exe()?;
    let folder = env::temp_dir().join(format!("tercet-counts-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let counted = watched(backend, &program, &folder);
    fs::remove_dir_all(&folder)?;
    counted
}

fn watched(
    backend: &str,
    program: &Path,
    folder: &Path,
) -> Result<(String, Vec<u64>), Box<dyn Error>> {
    let profile = folder.join("profile");
    let output = Command::new("valgrind")
        .args([
            "--quiet",
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=counted_by_valgrind",
            "--dump-after=counted_by_valgrind",
            "--compress-strings=no",
            "--compress-pos=no",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .arg("run")
        .env("TERCET_BACKEND", backend)
        // Another number of threads would change how work is split, but not its amount; the pool here has one thread.
        .env_remove("RAYON_NUM_THREADS")
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{text}valgrind: {}", output.status).into());
    }
    let mut counts = Vec::new();
    // A dump for each case, numbered from 1, and an empty one at the end.
    loop {
        let dump = PathBuf::from(format!("{}.{}", profile.display(), counts.len() + 1));
        if !dump.exists() {
            break;
        }
        let text = fs::read_to_string(dump)?;
        counts.push(instructions(&text, &program.to_string_lossy())?);
    }
    Ok((String::from_utf8(output.stdout)?, counts))
}

/// Returns the instructions that a profile has in an object file.
///
/// Costs follow the `ob=` and `fn=` that they belong to, one line of code each. The line after `calls=` is the cost of
/// a callee, which is also listed with the callee.
fn instructions(profile: &str, object: &str) -> Result<u64, Box<dyn Error>> {
    let (mut inside, mut callee, mut sum) = (false, false, 0);
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            inside = name == object;
        } else if line.starts_with("calls=") {
            callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let cost = line.split(' ').nth(1);
            if inside && !callee {
                sum += cost
                    .ok_or("a line of a profile without a cost")?
                    .parse::<u64>()?;
            }
            callee = false;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::instructions;

    #[test]
    fn costs_of_callees_and_of_other_objects_are_left_out() {
        let profile = "\
version: 1
events: Ir
ob=/bin/counts
fl=a.rs
fn=work
12 40
calls=1 7
13 900
14 2
ob=/lib/libc.so
fn=memcpy
0 900
ob=/bin/counts
fn=more
1 100

totals: 1042
";
        assert_eq!(instructions(profile, "/bin/counts").unwrap(), 142);
        assert_eq!(instructions(profile, "/lib/libc.so").unwrap(), 900);
    }
}
