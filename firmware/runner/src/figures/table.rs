//! The committed figures of a board, `firmware/snapshots/BOARD.txt`.

use super::Figures;

/// Figures of programs on one board with one compiler: another compiler generates other code from the same source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The compiler, in the form of its signature in images.
    pub compiler: String,
    programs: Vec<(String, Figures)>,
}

impl Table {
    /// Makes a table of `compiler` without programs.
    pub fn new(compiler: &str) -> Self {
        Self {
            compiler: compiler.to_owned(),
            programs: Vec::new(),
        }
    }

    /// Reads a table.
    ///
    /// # Errors
    /// The first line that does not belong in a table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                if comment.starts_with("rustc version ") {
                    table.compiler = comment.to_owned();
                }
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [program, name, value] = words.as_slice() else {
                return Err(format!("no line of a table: {line}"));
            };
            let value = value
                .parse()
                .map_err(|_| format!("no line of a table: {line}"))?;
            table.entry(program).set(name, value);
        }
        Ok(table)
    }

    /// Returns a program's figures.
    pub fn get(&self, program: &str) -> Option<&Figures> {
        let found = self.programs.iter().find(|(name, _)| name == program);
        found.map(|(_, figures)| figures)
    }

    /// Returns the programs, by name.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|(name, _)| &**name)
    }

    /// Replaces a program's figures.
    pub fn set(&mut self, program: &str, figures: &Figures) {
        *self.entry(program) = figures.clone();
    }

    fn entry(&mut self, program: &str) -> &mut Figures {
        let at = self.programs.iter().position(|(name, _)| name == program);
        let at = at.unwrap_or_else(|| {
            let at = self
                .programs
                .partition_point(|(name, _)| name.as_str() < program);
            self.programs
                .insert(at, (program.to_owned(), Figures::default()));
            at
        });
        &mut self.programs[at].1
    }

    /// Returns the table as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# {}\n{:<14} {:<34} {:>9}\n",
            self.compiler, "# program", "figure", "value"
        );
        for (program, figures) in &self.programs {
            for (name, value) in figures.iter() {
                text += &format!("{program:<14} {name:<34} {value:>9}\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(flash: u64) -> Figures {
        let mut figures = Figures::default();
        figures.set("flash", flash);
        figures.set("instructions.assign", 512);
        figures
    }

    #[test]
    fn a_table_reads_back_with_its_programs_in_order() {
        let mut table = Table::new("rustc version 1.96.0 (x)");
        table.set("pools", &figures(5000));
        table.set("digits", &figures(38_000));
        table.set("pools", &figures(4000));
        assert_eq!(Table::parse(&table.text()), Ok(table.clone()));
        assert_eq!(table.programs().collect::<Vec<_>>(), ["digits", "pools"]);
        assert_eq!(table.get("pools"), Some(&figures(4000)));
        assert_eq!(table.get("motion"), None);
    }

    #[test]
    fn a_line_of_something_else_is_named() {
        assert_eq!(
            Table::parse("pools flash many"),
            Err("no line of a table: pools flash many".to_owned())
        );
    }
}
