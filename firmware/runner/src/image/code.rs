//! Finds the source files that the code of an image comes from.

use std::collections::BTreeMap;
use std::ops::Range;

use gimli::{Dwarf, EndianSlice, Reader, RunTimeEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use rustc_demangle::demangle;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Returns the bytes of code by source file, from the line tables of the debugging information. In these, inlined code
/// belongs to the file that it was inlined from.
///
/// Code that is inlined into `core::panicking` is not counted: it makes the arguments of a panic's message and formats
/// nothing.
///
/// # Errors
/// The debugging information is missing or broken.
pub fn by_file(file: &object::File<'_>) -> Result<BTreeMap<String, u64>, String> {
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let section = |id: SectionId| -> Result<Slice<'_>, gimli::Error> {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or_default(), endian))
    };
    let dwarf = Dwarf::load(section).map_err(|error| format!("DWARF: {error}"))?;
    let code: Vec<_> = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text && section.size() > 0)
        .map(|section| section.address()..section.address() + section.size())
        .collect();
    let mut bytes = BTreeMap::new();
    let panicking = functions(file, "core::panicking::");
    let holds =
        |ranges: &[Range<u64>], address| ranges.iter().any(|range| range.contains(&address));
    read(
        &dwarf,
        |address| holds(&code, address),
        |address| !holds(&panicking, address),
        &mut bytes,
    )
    .map_err(|error| format!("DWARF: {error}"))?;
    if bytes.is_empty() {
        return Err("no debugging information says where the image's code comes from".to_owned());
    }
    Ok(bytes)
}

/// Returns the addresses of the functions whose names begin with `begin`.
fn functions(file: &object::File<'_>, begin: &str) -> Vec<Range<u64>> {
    // Thumb's functions have odd addresses.
    let odd = match file.architecture() {
        object::Architecture::Arm => 1,
        _ => 0,
    };
    file.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text)
        .filter(|symbol| {
            let name = symbol.name().unwrap_or_default();
            format!("{:#}", demangle(name)).starts_with(begin)
        })
        .map(|symbol| {
            let start = symbol.address() & !odd;
            start..start + symbol.size()
        })
        .collect()
}

fn read<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    in_image: impl Fn(u64) -> bool,
    counts: impl Fn(u64) -> bool,
    bytes: &mut BTreeMap<String, u64>,
) -> Result<(), gimli::Error> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let Some(program) = unit.line_program.clone() else {
            continue;
        };
        let (program, sequences) = program.sequences()?;
        // The linker keeps the lines of functions that it dropped, at an address without code.
        for sequence in sequences.iter().filter(|sequence| in_image(sequence.start)) {
            let mut rows = program.resume_from(sequence);
            let mut last: Option<(u64, u64)> = None;
            while let Some((header, row)) = rows.next_row()? {
                if let Some((address, index)) = last
                    && let Some(entry) = header.file(index)
                    && row.address() > address
                    && counts(address)
                {
                    let name = path(dwarf, &unit, header, entry)?;
                    *bytes.entry(name).or_default() += row.address() - address;
                }
                last = (!row.end_sequence()).then(|| (row.address(), row.file_index()));
            }
        }
    }
    Ok(())
}

fn path<R: Reader>(
    dwarf: &Dwarf<R>,
    unit: &gimli::Unit<R>,
    header: &gimli::LineProgramHeader<R>,
    entry: &gimli::FileEntry<R>,
) -> Result<String, gimli::Error> {
    let text = |value| -> Result<String, gimli::Error> {
        let text = dwarf.attr_string(unit, value)?;
        Ok(text.to_string_lossy()?.into_owned())
    };
    let name = text(entry.path_name())?;
    match entry.directory(header) {
        Some(folder) => Ok(format!("{}/{name}", text(folder)?)),
        None => Ok(name),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_test_s_own_code_comes_from_here_and_from_the_standard_library() {
        let image = std::fs::read(std::env::current_exe().expect("a test")).expect("its file");
        let file = object::File::parse(&*image).expect("an ELF file");
        let bytes = by_file(&file).expect("debugging information");
        let of = |part: &str| -> u64 {
            bytes
                .iter()
                .filter(|(name, _)| name.contains(part))
                .map(|(_, bytes)| bytes)
                .sum()
        };
        assert!(of("image/code.rs") > 500);
        assert!(of("library/alloc/src/vec/mod.rs") > 500);
        // Its functions are in the image, but of their code only the part that was inlined from elsewhere is counted.
        assert!(!functions(&file, "core::panicking::").is_empty());
        assert!(of("library/core/src/panicking.rs") < 500);
        let code: u64 = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .map(|section| section.size())
            .sum();
        assert!(bytes.values().sum::<u64>() <= code);
    }

    #[test]
    fn an_image_that_says_nothing_is_an_error() {
        let image = object::write::Object::new(
            object::BinaryFormat::Elf,
            object::Architecture::Arm,
            object::Endianness::Little,
        );
        let image = image.write().expect("an image");
        let file = object::File::parse(&*image).expect("an image");
        assert!(by_file(&file).is_err());
    }
}
