//! Finds the compiler that cargo will use, and the parts that it lacks for a target, with or without rustup.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::Lack;
use super::says::Says;

/// A part that a compiler lacks.
pub(super) enum MissingPart {
    /// The target's standard library.
    Library(Library),
    /// Anything else.
    Other(Lack),
}

/// A standard library.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// The target that it is for.
    pub(super) target: String,
    /// The Rust that lacks it.
    pub(super) rust: Rust,
}

/// An installed Rust.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rust {
    /// The folder with the libraries of all targets.
    folder: PathBuf,
    /// rustup's name for it, if rustup installed it.
    toolchain: Option<String>,
}

impl Rust {
    /// Returns the missing libraries for these targets as one lack.
    pub(super) fn lack(&self, targets: &[&str]) -> Lack {
        let (names, list) = (targets.join(", "), targets.join(" "));
        let how = match &self.toolchain {
            Some(name) if name.starts_with("stable-") => format!("rustup target add {list}"),
            // Perhaps not the toolchain that rustup uses by default.
            Some(name) => format!("rustup target add --toolchain {name} {list}"),
            None => format!(
                "rustup target add {list}, with a Rust of https://rustup.rs: this one is not rustup's"
            ),
        };
        Lack {
            what: format!(
                "the standard library for {names} in {}",
                self.folder.display()
            ),
            how,
        }
    }
}

/// Folders of a compiler.
struct Paths {
    sysroot: PathBuf,
    /// The target's libraries.
    libraries: PathBuf,
    host: String,
}

impl Paths {
    /// Returns the folder with the libraries of all targets, which also contains the compiler's tools.
    fn rustlib(&self) -> &Path {
        let mut parents = self.libraries.ancestors();
        parents.nth(2).unwrap_or(&self.sysroot)
    }

    /// Returns the folder of the compiler's own tools.
    fn tools(&self) -> PathBuf {
        self.rustlib().join(&self.host).join("bin")
    }

    /// Returns the Rust that the compiler belongs to. rustup keeps its toolchains in a folder of that name.
    fn rust(&self) -> Rust {
        let parent = self.sysroot.parent().and_then(Path::file_name);
        let name = self.sysroot.file_name().and_then(|name| name.to_str());
        Rust {
            folder: self.rustlib().to_owned(),
            toolchain: name
                .filter(|_| parent.is_some_and(|parent| parent == "toolchains"))
                .map(str::to_owned),
        }
    }
}

/// Returns the parts for a target that are missing from the compiler which cargo uses in `folder` with the
/// configuration `config`.
pub(super) fn missing(folder: &Path, target: &str, config: &Path) -> Vec<MissingPart> {
    let says = Says::read(folder, config, target);
    if says.library() {
        return Vec::new();
    }
    let paths = match ask(folder, target) {
        Ok(paths) => paths,
        Err(lack) => return vec![MissingPart::Other(lack)],
    };
    judge(
        &says,
        &paths,
        &env::var_os("PATH").unwrap_or_default(),
        target,
    )
}

/// Returns the parts that are in none of the folders where they belong; programs may also be in those of `path`.
fn judge(says: &Says, paths: &Paths, path: &OsStr, target: &str) -> Vec<MissingPart> {
    let mut missing = Vec::new();
    if !has_core(&paths.libraries) {
        let target = target.to_owned();
        let rust = paths.rust();
        missing.push(MissingPart::Library(Library { target, rust }));
    }
    if !says.linker() && !has_linker(paths, path) {
        missing.push(MissingPart::Other(linker(paths, target)));
    }
    missing
}

/// Asks the compiler for its folders; the error is the reason why it cannot be asked.
fn ask(folder: &Path, target: &str) -> Result<Paths, Lack> {
    let rustc = name();
    let name = rustc.display();
    let prints = ["sysroot", "target-libdir", "host-tuple"];
    let output = Command::new(&rustc)
        .args(prints.iter().flat_map(|it| ["--print", it]))
        .args(["--target", target])
        .current_dir(folder)
        .output()
        .map_err(|error| Lack {
            what: format!("{name}, the compiler: {error}"),
            how: "https://rustup.rs".to_owned(),
        })?;
    let (out, told) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let mut lines = out.lines();
    match (lines.next(), lines.next(), lines.next()) {
        (Some(sysroot), Some(libraries), Some(host)) if output.status.success() => Ok(Paths {
            sysroot: sysroot.into(),
            libraries: libraries.into(),
            host: host.to_owned(),
        }),
        _ => Err(Lack {
            what: format!("a compiler for {target}"),
            how: format!(
                "{name} --print target-libdir --target {target}: {}",
                told.lines().next().unwrap_or("it names no folder")
            ),
        }),
    }
}

/// Returns the linker of bare-metal targets, which a distribution's Rust may lack.
fn linker(paths: &Paths, target: &str) -> Lack {
    let variable = target.to_uppercase().replace(['-', '.'], "_");
    Lack {
        what: format!(
            "rust-lld, which links for {target}, in {} or PATH",
            paths.tools().display()
        ),
        how: format!(
            "a Rust of https://rustup.rs has it; or apt-get install lld, brew install lld, and CARGO_TARGET_{variable}_LINKER=ld.lld"
        ),
    }
}

/// Returns the compiler's name, as cargo finds it in the environment.
fn name() -> OsString {
    let given = |name| env::var_os(name).filter(|value| !value.is_empty());
    given("RUSTC")
        .or_else(|| given("CARGO_BUILD_RUSTC"))
        .unwrap_or_else(|| "rustc".into())
}

/// Returns true if a folder contains a target's libraries. No program works without `core`.
fn has_core(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.any(|name| name.starts_with("libcore-") && name.ends_with(".rlib"))
}

/// Returns true if the linker of bare-metal targets is where the compiler looks for it.
fn has_linker(paths: &Paths, path: &OsStr) -> bool {
    let file = format!("rust-lld{}", env::consts::EXE_SUFFIX);
    let mut folders = std::iter::once(paths.tools()).chain(env::split_paths(path));
    folders.any(|folder| folder.join(&file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This does not test a whole machine for the linker that is looked for: a configuration above this folder may
    /// name another.
    #[test]
    fn a_linker_is_looked_for_beside_the_compiler_and_in_the_path() {
        let folder = env::temp_dir().join(format!("tercet-linker-{}", std::process::id()));
        let paths = Paths {
            sysroot: folder.clone(),
            libraries: folder.join("lib/rustlib/target/lib"),
            host: "host".to_owned(),
        };
        fs::create_dir_all(&paths.libraries).unwrap();
        fs::create_dir_all(paths.tools()).unwrap();
        fs::write(paths.libraries.join("libcore-0.rlib"), "").unwrap();
        let says = Says::of(std::iter::empty());
        let target = "thumbv8m.main-none-eabihf";
        let missing = |path: &Path| judge(&says, &paths, path.as_os_str(), target);
        let [MissingPart::Other(lack)] = &missing(Path::new(""))[..] else {
            panic!("no linker");
        };
        assert!(
            lack.what
                .starts_with("rust-lld, which links for thumbv8m.main-none-eabihf, in ")
        );
        let variable = "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABIHF_LINKER=ld.lld";
        assert!(lack.how.ends_with(variable), "{}", lack.how);
        let linker = paths
            .tools()
            .join(format!("rust-lld{}", env::consts::EXE_SUFFIX));
        fs::write(&linker, "").unwrap();
        assert!(missing(Path::new("")).is_empty());
        let other = folder.join(linker.file_name().unwrap());
        fs::rename(linker, other).unwrap();
        assert!(!missing(Path::new("")).is_empty());
        assert!(missing(&folder).is_empty());
        let says = Says::of(["linker = \"mine\"".to_owned()].into_iter());
        assert!(judge(&says, &paths, OsStr::new(""), target).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
