//! The lines of a table.

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation, layout, shape and code.
    pub name: [String; 4],
    /// Instructions of one run.
    pub instructions: u64,
    /// Work of one run: multiply-accumulates, operations.
    pub work: u64,
    /// Bytes that the caller lends besides inputs and outputs.
    pub scratch_bytes: u64,
    /// Bytes of code and constants; in the output of a board, the address of the code.
    pub code_bytes: u64,
}

/// Returns the rows of a table without comments.
///
/// # Errors
/// The first line that is not a row.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| parse_line(line).ok_or_else(|| format!("no line of a table: {line}")))
        .collect()
}

fn parse_line(line: &str) -> Option<Row> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let &[
        what,
        layout,
        shape,
        code,
        instructions,
        work,
        _each,
        scratch,
        last,
    ] = columns.as_slice()
    else {
        return None;
    };
    let last = match last.strip_prefix("0x") {
        Some(address) => u64::from_str_radix(address, 16),
        None => last.parse(),
    };
    Some(Row {
        name: [what, layout, shape, code].map(str::to_owned),
        instructions: instructions.parse().ok()?,
        work: work.parse().ok()?,
        scratch_bytes: scratch.parse().ok()?,
        code_bytes: last.ok()?,
    })
}

/// Returns the table.
pub fn table(rows: &[Row]) -> String {
    let mut table = format!(
        "{:<9} {:<14} {:>9} {:<8} {:>9} {:>7} {:>8} {:>7} {:>6}\n",
        "# what", "layout", "shape", "code", "instr", "work", "each", "scratch", "code B"
    );
    for row in rows {
        let [what, layout, shape, code] = &row.name;
        let Row {
            instructions,
            work,
            scratch_bytes,
            code_bytes,
            ..
        } = row;
        let each = row.each();
        table += &format!(
            "{what:<9} {layout:<14} {shape:>9} {code:<8} {instructions:>9} {work:>7} {each:>8.3} {scratch_bytes:>7} {code_bytes:>6}\n"
        );
    }
    table
}

impl Row {
    /// Returns the instructions per unit of work.
    pub fn each(&self) -> f64 {
        self.instructions as f64 / self.work as f64
    }

    /// Returns one line of JSON. No name contains a character that JSON would escape.
    pub fn json(&self, board: &str) -> String {
        let [what, layout, shape, code] = &self.name;
        format!(
            "{{\"board\":\"{board}\",\"what\":\"{what}\",\"layout\":\"{layout}\",\"shape\":\"{shape}\",\"code\":\"{code}\",\
             \"instructions\":{},\"work\":{},\"each\":{:.3},\"scratch_bytes\":{},\"code_bytes\":{}}}",
            self.instructions,
            self.work,
            self.each(),
            self.scratch_bytes,
            self.code_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_s_line_and_a_table_s_line_read_back() {
        let printed = "# what layout\ndense    int8            256x1024 plain      1338428  262144    5.106       0 0x00001043\n";
        let mut rows = parse(printed).expect("two good lines");
        assert_eq!(rows[0].instructions, 1_338_428);
        assert_eq!(rows[0].code_bytes, 0x1043);
        rows[0].code_bytes = 812;
        assert_eq!(parse(&table(&rows)).expect("a table"), rows);
    }

    #[test]
    fn a_line_of_something_else_is_named() {
        assert_eq!(
            parse("hard fault at 0x0\n"),
            Err("no line of a table: hard fault at 0x0".to_owned())
        );
    }
}
