//! Compares a table with the committed one.

use crate::row::Row;

/// Growth that is accepted, in per cent: only enough for the preferences of another compiler.
const PERCENT: u64 = 2;
/// Growth that is accepted in bytes of code, since functions are small.
const BYTES: u64 = 32;

/// Returns every case in which `now` is worse than `committed` and every difference in cases, one line each.
pub fn compare(committed: &[Row], now: &[Row]) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in now {
        let name = row.name.join(" ");
        let Some(before) = committed.iter().find(|before| before.name == row.name) else {
            complaints.push(format!("{name}: not in the committed table"));
            continue;
        };
        for (what, was, is, slack) in [
            ("instructions", before.instructions, row.instructions, 0),
            ("bytes of code", before.code_bytes, row.code_bytes, BYTES),
            (
                "bytes of scratch",
                before.scratch_bytes,
                row.scratch_bytes,
                0,
            ),
        ] {
            if is > was + (was * PERCENT / 100).max(slack) {
                complaints.push(format!("{name}: {is} {what}, {was} in the committed table"));
            }
        }
    }
    for before in committed {
        if !now.iter().any(|row| row.name == before.name) {
            complaints.push(format!(
                "{}: only in the committed table",
                before.name.join(" ")
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, instructions: u64, code_bytes: u64) -> Row {
        Row {
            name: ["dense", name, "1x1", "kernel"].map(str::to_owned),
            instructions,
            work: 100,
            scratch_bytes: 8,
            code_bytes,
        }
    }

    #[test]
    fn two_per_cent_pass_and_one_instruction_more_does_not() {
        let committed = [row("int8", 1000, 200)];
        assert!(compare(&committed, &[row("int8", 1020, 200)]).is_empty());
        assert!(compare(&committed, &[row("int8", 900, 232)]).is_empty());
        assert_eq!(
            compare(&committed, &[row("int8", 1021, 233)]),
            [
                "dense int8 1x1 kernel: 1021 instructions, 1000 in the committed table",
                "dense int8 1x1 kernel: 233 bytes of code, 200 in the committed table",
            ]
        );
    }

    #[test]
    fn cases_come_and_go_only_by_renewing_the_table() {
        assert_eq!(
            compare(&[row("old", 1, 1)], &[row("new", 1, 1)]),
            [
                "dense new 1x1 kernel: not in the committed table",
                "dense old 1x1 kernel: only in the committed table",
            ]
        );
    }
}
