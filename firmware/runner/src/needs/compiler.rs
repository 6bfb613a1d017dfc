//! The compiler that cargo will take, and what it lacks for a target: no matter whether rustup brought it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::Lack;
use super::says::Says;

/// A part that a compiler lacks.
pub(super) enum Part {
    /// The target's standard library.
    Library(Library),
    /// Anything else.
    Other(Lack),
}

/// A standard library.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// What it is for.
    pub(super) target: String,
    /// Where it is missing.
    pub(super) rust: Rust,
}

/// An installed Rust.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rust {
    /// Where the libraries of all targets lie.
    folder: PathBuf,
    /// rustup's name for it, where it is rustup's.
    toolchain: Option<String>,
}

impl Rust {
    /// The libraries for these targets.
    pub(super) fn lack(&self, targets: &[&str]) -> Lack {
        let (names, list) = (targets.join(", "), targets.join(" "));
        let how = match &self.toolchain {
            Some(name) if name.starts_with("stable-") => format!("rustup target add {list}"),
            // Perhaps not the one that rustup takes by itself.
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

/// Where a compiler keeps what.
struct Paths {
    sysroot: PathBuf,
    /// The target's libraries.
    libraries: PathBuf,
    host: String,
}

impl Paths {
    /// The folder of all targets' libraries, in which the compiler also has its tools.
    fn rustlib(&self) -> &Path {
        let mut parents = self.libraries.ancestors();
        parents.nth(2).unwrap_or(&self.sysroot)
    }

    /// The folder of the compiler's own tools.
    fn tools(&self) -> PathBuf {
        self.rustlib().join(&self.host).join("bin")
    }

    /// The Rust that it is of; rustup keeps its own in a folder of that name.
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

/// What the compiler that cargo takes in `folder`, told of the configuration `config`, lacks for a target.
pub(super) fn missing(folder: &Path, target: &str, config: &Path) -> Vec<Part> {
    let says = Says::read(folder, config, target);
    if says.library() {
        return Vec::new();
    }
    let paths = match ask(folder, target) {
        Ok(paths) => paths,
        Err(lack) => return vec![Part::Other(lack)],
    };
    judge(
        &says,
        &paths,
        &env::var_os("PATH").unwrap_or_default(),
        target,
    )
}

/// What is in none of the folders where it belongs; programs may be in those of `path` too.
fn judge(says: &Says, paths: &Paths, path: &OsStr, target: &str) -> Vec<Part> {
    let mut missing = Vec::new();
    if !has_core(&paths.libraries) {
        let target = target.to_owned();
        let rust = paths.rust();
        missing.push(Part::Library(Library { target, rust }));
    }
    if !says.linker() && !has_linker(paths, path) {
        missing.push(Part::Other(linker(paths, target)));
    }
    missing
}

/// Asks the compiler where it keeps what; or why it cannot be asked.
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

/// The linker of bare-metal targets, which a distribution's Rust may lack.
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

/// The compiler's name, as cargo finds it in the environment.
fn name() -> OsString {
    let given = |name| env::var_os(name).filter(|value| !value.is_empty());
    given("RUSTC")
        .or_else(|| given("CARGO_BUILD_RUSTC"))
        .unwrap_or_else(|| "rustc".into())
}

/// Whether a target's libraries, of which no program can do without `core`, lie there.
fn has_core(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.any(|name| name.starts_with("libcore-") && name.ends_with(".rlib"))
}

/// Whether the linker of bare-metal targets is where the compiler looks for it.
fn has_linker(paths: &Paths, path: &OsStr) -> bool {
    let file = format!("rust-lld{}", env::consts::EXE_SUFFIX);
    let mut folders = std::iter::once(paths.tools()).chain(env::split_paths(path));
    folders.any(|folder| folder.join(&file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which linker is looked for is not tested on a whole machine: a configuration above this folder may well name another.
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
        let [Part::Other(lack)] = &missing(Path::new(""))[..] else {
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
