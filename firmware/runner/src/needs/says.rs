//! The settings of the environment and of cargo's configurations, as text. It is only searched for mentions of
//! something.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// All settings that affect building for a target.
pub(super) struct Says(String);

impl Says {
    /// Reads the files and variables that cargo reads if it builds in `folder` and also gets `config`.
    pub(super) fn read(folder: &Path, config: &Path, target: &str) -> Self {
        let mut files = vec![config.to_owned()];
        let homes = folder.ancestors().map(|folder| folder.join(".cargo"));
        for home in homes.chain(cargo_home()) {
            files.extend(["config.toml", "config"].map(|name| home.join(name)));
        }
        let texts = files
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok());
        let variables = env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_string_lossy());
            variable(name, &value, target)
        });
        Self::of(texts.chain(variables))
    }

    /// Makes it from these texts.
    pub(super) fn of(texts: impl Iterator<Item = String>) -> Self {
        let mut all = String::new();
        for text in texts {
            for line in text.lines() {
                all += line.split('#').next().unwrap_or_default().trim();
                all.push('\n');
            }
        }
        Self(all)
    }

    /// Returns true if cargo builds the library itself, uses another compiler or library folder than its default, or
    /// reads more configurations. Then only cargo knows if there is a library.
    pub(super) fn library(&self) -> bool {
        let is = |name: &str| {
            let value = |line: &str| Some(line.strip_prefix(name)?.trim_start().starts_with('='));
            self.0.lines().any(|line| value(line) == Some(true))
        };
        ["build-std", "sysroot"]
            .iter()
            .any(|it| self.0.contains(it))
            || ["rustc", "build.rustc", "include"].iter().any(|it| is(it))
    }

    /// Returns true if the settings name another linker than the target's own.
    pub(super) fn linker(&self) -> bool {
        self.0.contains("linker")
    }
}

/// Returns a variable in the form of a line of a configuration; `None` if it does not affect building for the target.
fn variable(name: &str, value: &str, target: &str) -> Option<String> {
    let target = target.to_uppercase().replace(['-', '.'], "_");
    if value.is_empty() {
        None
    } else if name == "CARGO_UNSTABLE_BUILD_STD" {
        Some("build-std".to_owned())
    } else if name == format!("CARGO_TARGET_{target}_LINKER") {
        Some("linker".to_owned())
    } else {
        let flags = [
            "RUSTFLAGS".to_owned(),
            "CARGO_ENCODED_RUSTFLAGS".to_owned(),
            "CARGO_BUILD_RUSTFLAGS".to_owned(),
            format!("CARGO_TARGET_{target}_RUSTFLAGS"),
        ];
        flags.iter().any(|it| it == name).then(|| value.to_owned())
    }
}

/// Returns the folder of the user's cargo configuration.
fn cargo_home() -> Option<PathBuf> {
    match env::var_os("CARGO_HOME").filter(|home| !home.is_empty()) {
        Some(home) => Some(home.into()),
        None => Some(env::home_dir()?.join(".cargo")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> (bool, bool) {
        let says = Says::of([text.to_owned()].into_iter());
        (says.library(), says.linker())
    }

    #[test]
    fn who_builds_otherwise_is_not_judged() {
        assert_eq!(says("[unstable]\nbuild-std = [\"core\"]"), (true, false));
        assert_eq!(says("[build]\nrustc = \"mine\""), (true, false));
        assert_eq!(says("include = \"more.toml\""), (true, false));
        assert_eq!(says("--sysroot=/mine"), (true, false));
        assert_eq!(says("[target.t]\nlinker = \"mine\""), (false, true));
        assert_eq!(says("-Clinker=mine"), (false, true));
    }

    #[test]
    fn what_says_nothing_of_it_is_passed_over() {
        let text = "# build-std, linker\n[build]\nrustc-wrapper = \"sccache\"\nrustflags = [\"-Copt-level=1\"] # sysroot";
        assert_eq!(says(text), (false, false));
    }

    #[test]
    fn variables_are_those_of_the_target() {
        let target = "thumbv8m.main-none-eabi";
        let linker = variable(
            "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABI_LINKER",
            "mine",
            target,
        );
        assert_eq!(linker.as_deref(), Some("linker"));
        assert_eq!(
            variable("CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER", "mine", target),
            None
        );
        assert_eq!(variable("CARGO_UNSTABLE_BUILD_STD", "", target), None);
        let flags = variable("RUSTFLAGS", "--sysroot=/mine", target);
        assert_eq!(flags.as_deref(), Some("--sysroot=/mine"));
    }
}
