//! Runs the programs of `benches/mcu` on a board and makes one table of their output.
//!
//! `table BOARD IMAGES PROGRAMS SNAPSHOT RUNNER…` runs `RUNNER… IMAGES/PROGRAM` for each of PROGRAMS (separated by
//! spaces), and adds the size of each case's code. It prints the table, writes it as JSON lines to
//! `target/ci/mcu-BOARD.jsonl`, and compares it with SNAPSHOT. With TERCET_OVERWRITE=1 it writes SNAPSHOT instead. The
//! exit status is 1 if a program fails or a case differs too much.

mod compare;
mod row;
mod size;

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use row::Row;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [board, images, programs, snapshot, runner @ ..] = arguments.as_slice() else {
        return Err("table BOARD IMAGES PROGRAMS SNAPSHOT RUNNER...".into());
    };
    let mut rows = Vec::new();
    for program in programs.split_whitespace() {
        rows.extend(measure(runner, &Path::new(images).join(program))?);
    }
    let table = row::table(&rows);
    print!("{table}");
    let lines: String = rows.iter().map(|row| row.json(board) + "\n").collect();
    fs::create_dir_all("target/ci")?;
    fs::write(format!("target/ci/mcu-{board}.jsonl"), lines)?;

    if env::var_os("TERCET_OVERWRITE").is_some() {
        fs::write(snapshot, table)?;
        return Ok(());
    }
    let committed = fs::read_to_string(snapshot).map_err(|error| format!("{snapshot}: {error}"))?;
    let complaints = compare::compare(&row::parse(&committed)?, &rows);
    if complaints.is_empty() {
        return Ok(());
    }
    let complaints: Vec<String> = complaints
        .iter()
        .map(|complaint| format!("{board} {complaint}"))
        .collect();
    Err(format!(
        "{}\nTERCET_OVERWRITE=1 .ci/test mcu:{board} renews {snapshot}",
        complaints.join("\n")
    )
    .into())
}

/// Runs one image and returns its lines, with sizes.
fn measure(runner: &[String], image: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let (first, rest) = runner.split_first().ok_or("no runner")?;
    let output = Command::new(first)
        .args(rest)
        .arg(image)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{first}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{text}{}: {}", image.display(), output.status).into());
    }
    let elf = fs::read(image)?;
    let code = size::Code::read(&elf)?;
    let mut rows = row::parse(&text)?;
    for row in &mut rows {
        // The last column that a board prints is an address.
        row.code_bytes = code.reachable(row.code_bytes)?;
    }
    Ok(rows)
}
