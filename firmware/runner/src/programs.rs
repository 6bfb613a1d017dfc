//! The programs of `firmware/Cargo.toml`, and their promises in `firmware/programs.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// A program and its promises.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of the binary.
    pub name: String,
    /// The features of `tercet-firmware` that it is built with: those of all programs, so that all programs for a
    /// board share one library. The linker drops the parts that a program does not use.
    pub features: Vec<String>,
    /// Its other rules.
    pub rules: Rules,
}

/// A table of `programs.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Its purpose, in a line.
    pub about: String,
    /// True if it counts instructions: in QEMU 128 ns of the board's time then pass with each one.
    pub counts: bool,
    /// Statics that are data to the program, such as a model: parts of their names. Their bytes are separate figures.
    pub data: Vec<String>,
    /// Code that the image must not contain.
    pub without: Vec<Guard>,
    /// Maximum bytes on any board, by figure.
    pub limits: BTreeMap<String, u64>,
}

impl Rules {
    /// Adds the limits and guards of `all`, except those that these rules have under the same name.
    fn with(mut self, all: &Self) -> Self {
        for (name, &limit) in &all.limits {
            self.limits.entry(name.clone()).or_insert(limit);
        }
        for guard in &all.without {
            if !self.without.contains(guard) {
                self.without.push(*guard);
            }
        }
        self
    }
}

/// Code that an image must not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Code of `alloc`, or a global allocator.
    Alloc,
    /// Code of `core::fmt`.
    Fmt,
    /// Code that converts floats to text or text to floats.
    FloatText,
}

#[derive(Deserialize)]
struct Manifest {
    bin: Vec<Bin>,
}

#[derive(Deserialize)]
struct Bin {
    name: String,
    #[serde(default, rename = "required-features")]
    features: Vec<String>,
}

/// Returns the programs of the folder `firmware`, by name.
///
/// # Errors
/// The faulty one of the two files and its fault, such as rules for a program that does not exist.
pub fn all(firmware: &Path) -> Result<Vec<Program>, String> {
    let read = |name: &str| {
        let path = firmware.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    parse(&read("Cargo.toml")?, &read("programs.toml")?)
}

/// Returns the program with this name.
///
/// # Errors
/// Those of [`all`], and a name that no program has; that error lists all names.
pub fn find(firmware: &Path, name: &str) -> Result<Program, String> {
    let programs = all(firmware)?;
    if let Some(program) = programs.iter().find(|program| program.name == name) {
        return Ok(program.clone());
    }
    let names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
    Err(format!("no program {name}; there are {}", names.join(", ")))
}

/// Returns the program of an image that is already built. A name that `firmware` does not list is that of a program
/// without features and promises.
///
/// # Errors
/// Those of [`all`].
pub fn of_image(firmware: &Path, name: &str) -> Result<Program, String> {
    let listed = all(firmware)?
        .into_iter()
        .find(|program| program.name == name);
    Ok(listed.unwrap_or_else(|| Program {
        name: name.to_owned(),
        features: Vec::new(),
        rules: Rules::default(),
    }))
}

fn parse(manifest: &str, rules: &str) -> Result<Vec<Program>, String> {
    let manifest: Manifest =
        toml::from_str(manifest).map_err(|error| format!("firmware/Cargo.toml: {error}"))?;
    let mut rules: BTreeMap<String, Rules> =
        toml::from_str(rules).map_err(|error| format!("firmware/programs.toml: {error}"))?;
    let all = rules.remove("all").unwrap_or_default();
    let needed: BTreeSet<String> = manifest
        .bin
        .iter()
        .flat_map(|bin| bin.features.iter().cloned())
        .collect();
    let mut programs: Vec<Program> = manifest
        .bin
        .into_iter()
        .map(|bin| Program {
            rules: rules.remove(&bin.name).unwrap_or_default().with(&all),
            name: bin.name,
            features: needed.iter().cloned().collect(),
        })
        .collect();
    if let Some(name) = rules.keys().next() {
        return Err(format!(
            "firmware/programs.toml: {name} is no program of firmware/Cargo.toml"
        ));
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[[bin]]
name = "pools"
[[bin]]
name = "motion"
required-features = ["defmt"]
"#;

    #[test]
    fn a_program_has_its_features_and_its_rules() {
        let rules = "[motion]\ncounts = true\nwithout = ['float-text']\nlimits = { ram = 16384 }";
        let programs = parse(MANIFEST, rules).expect("two programs");
        let [motion, pools] = programs.as_slice() else {
            panic!("{programs:?}");
        };
        assert_eq!(motion.name, "motion");
        assert_eq!(motion.features, ["defmt"]);
        assert_eq!(pools.features, motion.features);
        assert!(motion.rules.counts);
        assert_eq!(motion.rules.without, [Guard::FloatText]);
        assert_eq!(motion.rules.limits["ram"], 16384);
        assert!(!pools.rules.counts && pools.rules.without.is_empty());
    }

    #[test]
    fn what_is_said_of_all_holds_where_nothing_else_is() {
        let rules = "[all]\nwithout = ['alloc']\nlimits = { flash = 9, ram = 7 }\n[motion]\nlimits = { ram = 5 }";
        let programs = parse(MANIFEST, rules).expect("two programs");
        let limits = |at: usize| {
            programs[at]
                .rules
                .limits
                .values()
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(limits(0), [9, 5]);
        assert_eq!(limits(1), [9, 7]);
        assert_eq!(programs[1].rules.without, [Guard::Alloc]);
    }

    #[test]
    fn rules_for_nothing_and_unknown_rules_are_refused() {
        let nobody = parse(MANIFEST, "[nobody]").expect_err("no such program");
        assert!(nobody.contains("nobody is no program"), "{nobody}");
        let typo = parse(MANIFEST, "[pools]\nwithuot = []").expect_err("no such rule");
        assert!(typo.contains("withuot"), "{typo}");
    }
}
