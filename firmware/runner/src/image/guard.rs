//! Code that an image must not contain. It is found by the names of its functions, and by the source files of its
//! code, which also show inlined code.

use object::{Object, ObjectSymbol, SymbolKind};
use rustc_demangle::demangle;

use super::code;
use crate::programs::Guard;

impl Guard {
    fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Fmt => "core::fmt",
            Self::FloatText => "floats as text",
        }
    }

    /// Returns true if the guard is about this source file of the standard library.
    fn is_file(self, path: &str) -> bool {
        match self {
            Self::Alloc => path.contains("library/alloc/src/"),
            Self::Fmt => path.contains("library/core/src/fmt/"),
            Self::FloatText => ["/flt2dec/", "/dec2flt/", "core/src/fmt/float.rs"]
                .iter()
                .any(|part| path.contains(part)),
        }
    }

    /// Returns true if the guard is about this function; the name is demangled, without hash.
    fn is_function(self, name: &str) -> bool {
        let of = |room: &str| {
            name.starts_with(room)
                || name.strip_prefix('<').is_some_and(|rest| {
                    rest.starts_with(room) || rest.contains(&format!(" as {room}"))
                })
        };
        match self {
            Self::Alloc => {
                of("alloc::")
                    || [
                        "__rust_alloc",
                        "__rust_dealloc",
                        "__rust_realloc",
                        "__rg_",
                        "__rdl_",
                    ]
                    .iter()
                    .any(|part| name.contains(part))
            }
            Self::Fmt => of("core::fmt::"),
            Self::FloatText => ["flt2dec", "dec2flt", "grisu", "dragon", "ryu::"]
                .iter()
                .any(|part| name.contains(part)),
        }
    }
}

/// Returns every place where an image contains code of `guards`, one line each.
///
/// # Errors
/// The image has no debugging information.
pub fn violations(file: &object::File<'_>, guards: &[Guard]) -> Result<Vec<String>, String> {
    if guards.is_empty() {
        return Ok(Vec::new());
    }
    let files = code::by_file(file)?;
    let mut functions: Vec<String> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| format!("{:#}", demangle(symbol.name().unwrap_or_default())))
        .collect();
    functions.sort();
    functions.dedup();
    let mut found = Vec::new();
    for guard in guards {
        let what = guard.name();
        for (path, bytes) in files.iter().filter(|(path, _)| guard.is_file(path)) {
            found.push(format!("{what}: {bytes} bytes of code from {path}"));
        }
        for name in functions.iter().filter(|name| guard.is_function(name)) {
            found.push(format!("{what}: the function {name}"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_by_where_they_are_defined() {
        for (guard, name) in [
            (Guard::Fmt, "core::fmt::write"),
            (Guard::Fmt, "<core::fmt::Formatter>::pad"),
            (Guard::Fmt, "<u32 as core::fmt::Display>::fmt"),
            (Guard::Alloc, "alloc::raw_vec::finish_grow"),
            (Guard::Alloc, "<alloc::vec::Vec<u8>>::push"),
            (Guard::Alloc, "__rust_alloc"),
            (Guard::Alloc, "__rustc::__rust_dealloc"),
            (
                Guard::FloatText,
                "core::num::flt2dec::strategy::grisu::format_exact",
            ),
        ] {
            assert!(guard.is_function(name), "{name}");
        }
        for (guard, name) in [
            // Named after a type of core::fmt, but code of another module.
            (
                Guard::Fmt,
                "<core::result::Result<(), core::fmt::Error>>::ok",
            ),
            (Guard::Alloc, "<tercet_core::pool::Arena>::alloc"),
            (Guard::Fmt, "tercet_firmware::format"),
        ] {
            assert!(!guard.is_function(name), "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_of_the_desk_breaks_every_guard() {
        let image = std::fs::read(std::env::current_exe().expect("a test")).expect("its file");
        let file = object::File::parse(&*image).expect("an ELF file");
        assert!(format!("{}", std::hint::black_box(0.1_f64)).starts_with("0.1"));
        for guard in [Guard::Alloc, Guard::Fmt, Guard::FloatText] {
            let found = violations(&file, &[guard]).expect("debugging information");
            let by = |what| found.iter().any(|line| line.contains(what));
            assert!(by(" bytes of code from "), "{guard:?}: {found:?}");
            assert!(by("the function"), "{guard:?}: {found:?}");
        }
    }
}
