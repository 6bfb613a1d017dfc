//! Figures of a program: sizes, stack, instructions.

mod compare;
mod table;

pub use compare::{Comparison, compare, over_limits};
pub use table::Table;

/// Names and values, in the order they were found. Names contain no spaces; a name with a dot is a part of the figure
/// before the dot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures(Vec<(String, u64)>);

impl Figures {
    /// Sets a figure.
    pub fn set(&mut self, name: &str, value: u64) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds to a figure, which is 0 at first.
    pub fn add(&mut self, name: &str, value: u64) {
        self.set(name, self.get(name).unwrap_or(0) + value);
    }

    /// Returns a figure's value.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|&(_, value)| value)
    }

    /// Returns all figures.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Takes the figures that a program printed: `# stack N`, `# state N`, `# app N` and `# instructions NAME N`. If
    /// there is a stack, also sets `ram.total`, the sum of statics and stack.
    pub fn take_printed(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, value) = match words.as_slice() {
                ["#", name @ ("stack" | "state" | "app"), value] => ((*name).to_owned(), value),
                ["#", "instructions", name, value] => (format!("instructions.{name}"), value),
                _ => continue,
            };
            if let Ok(value) = value.parse() {
                self.set(&name, value);
            }
        }
        if let (Some(ram), Some(stack)) = (self.get("ram"), self.get("stack")) {
            self.set("ram.total", ram + stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_figures_are_taken_and_other_lines_are_not() {
        let mut figures = Figures::default();
        figures.set("ram", 100);
        let lines = [
            "logits 00ff",
            "# stack 28",
            "# instructions assign 512",
            "# lock-free blocks: 3 of 12 in use",
            "# stack deep",
            "window 3 # stack 5",
        ];
        figures.take_printed(&lines.map(str::to_owned));
        let all: Vec<_> = figures.iter().collect();
        assert_eq!(
            all,
            [
                ("ram", 100),
                ("stack", 28),
                ("instructions.assign", 512),
                ("ram.total", 128)
            ]
        );
    }
}
