//! The table of counts, and its comparison with the committed one.

use std::error::Error;

/// Growth that is accepted, in per cent: only enough for the way in which a compiler lays out a loop.
const PERCENT: u64 = 2;

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The operation, and its input.
    pub(crate) name: [String; 2],
    /// Instructions of one run.
    pub(crate) instructions: u64,
    /// Work of one run: values, multiply-accumulates.
    pub(crate) work: u64,
}

/// Joins the lines that the counted program printed (`what on work`) with their counts.
pub(crate) fn join(printed: &str, counts: &[u64]) -> Result<Vec<Row>, Box<dyn Error>> {
    let lines: Vec<&str> = printed.lines().collect();
    if lines.len() != counts.len() {
        let (cases, counts) = (lines.len(), counts.len());
        return Err(format!("{cases} cases, {counts} counts of them").into());
    }
    let rows = lines.into_iter().zip(counts).map(|(line, &instructions)| {
        let columns: Vec<&str> = line.split(' ').collect();
        let &[what, on, work] = columns.as_slice() else {
            return Err(format!("no case: {line}").into());
        };
        if instructions == 0 {
            return Err(format!("{what} {on}: nothing was counted").into());
        }
        Ok(Row {
            name: [what, on].map(str::to_owned),
            instructions,
            work: work.parse()?,
        })
    });
    rows.collect()
}

/// Returns the table with the compiler in its first line.
pub(crate) fn table(compiler: &str, rows: &[Row]) -> String {
    let mut table = format!(
        "# {compiler}\n{:<24} {:<22} {:>10} {:>8} {:>8}\n",
        "# what", "on", "instr", "work", "each"
    );
    for row in rows {
        let [what, on] = &row.name;
        let Row {
            instructions, work, ..
        } = row;
        let each = *instructions as f64 / *work as f64;
        table += &format!("{what:<24} {on:<22} {instructions:>10} {work:>8} {each:>8.3}\n");
    }
    table
}

/// Returns the rows of a table without comments.
///
/// # Errors
/// The first line that is not a row.
pub(crate) fn parse(text: &str) -> Result<Vec<Row>, String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| parse_line(line).ok_or_else(|| format!("no line of a table: {line}")))
        .collect()
}

fn parse_line(line: &str) -> Option<Row> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let &[what, on, instructions, work, _each] = columns.as_slice() else {
        return None;
    };
    Some(Row {
        name: [what, on].map(str::to_owned),
        instructions: instructions.parse().ok()?,
        work: work.parse().ok()?,
    })
}

/// Returns every case in which `now` is worse than `committed` and every difference in cases, one line each.
pub(crate) fn compare(committed: &[Row], now: &[Row]) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in now {
        let (name, is) = (row.name.join(" "), row.instructions);
        match committed.iter().find(|before| before.name == row.name) {
            None => complaints.push(format!("{name}: not in the committed table")),
            Some(before) if before.work != row.work => {
                complaints.push(format!("{name}: of another size in the committed table"));
            }
            Some(before) => {
                let was = before.instructions;
                if is > was + was * PERCENT / 100 {
                    let more = 100.0 * (is as f64 / was as f64 - 1.0);
                    complaints.push(format!(
                        "{name}: {is} instructions, {more:.1} % more than the {was} of the committed table"
                    ));
                }
            }
        }
    }
    for before in committed {
        if !now.iter().any(|row| row.name == before.name) {
            let name = before.name.join(" ");
            complaints.push(format!("{name}: only in the committed table"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(on: &str, instructions: u64) -> Row {
        Row {
            name: ["encode", on].map(str::to_owned),
            instructions,
            work: 100,
        }
    }

    #[test]
    fn two_per_cent_pass_and_one_instruction_more_does_not() {
        let committed = [row("q8_0", 1000)];
        assert!(compare(&committed, &[row("q8_0", 1020)]).is_empty());
        assert!(compare(&committed, &[row("q8_0", 400)]).is_empty());
        assert_eq!(
            compare(&committed, &[row("q8_0", 1021)]),
            ["encode q8_0: 1021 instructions, 2.1 % more than the 1000 of the committed table"]
        );
    }

    #[test]
    fn cases_come_and_go_only_by_renewing_the_table() {
        let larger = Row {
            work: 200,
            ..row("same", 1)
        };
        assert_eq!(
            compare(&[row("old", 1), row("same", 1)], &[row("new", 1), larger]),
            [
                "encode new: not in the committed table",
                "encode same: of another size in the committed table",
                "encode old: only in the committed table",
            ]
        );
    }

    #[test]
    fn a_table_reads_back_and_a_line_of_something_else_is_named() {
        let rows = [row("tq1_0", 12_345), row("tq2_0", 7)];
        assert_eq!(parse(&table("rustc 1", &rows)).unwrap(), rows);
        assert_eq!(
            parse("# rustc 1\npanicked\n"),
            Err("no line of a table: panicked".into())
        );
    }

    #[test]
    fn every_case_needs_a_count_that_is_not_zero() {
        assert_eq!(
            join("encode tq1_0 100\n", &[12]).unwrap(),
            [row("tq1_0", 12)]
        );
        for (printed, counts) in [
            ("encode tq1_0 100\n", &[][..]),
            ("encode tq1_0 100\n", &[0]),
            ("a line\n", &[1]),
        ] {
            assert!(join(printed, counts).is_err(), "{printed}");
        }
    }
}
