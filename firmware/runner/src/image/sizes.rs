//! Bytes of flash and RAM.
//!
//! These are the sections that a loader puts on the board, the allocated ones. Debugging information and the strings
//! of defmt are not allocated and stay in the file.

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, elf};
use rustc_demangle::demangle;

use crate::figures::Figures;

/// Returns the sizes of an image: `flash`, its parts by section `flash.vectors`, `flash.text`, `flash.rodata`,
/// `flash.data` (initial values of statics) and so on, and `ram`, the size of statics.
///
/// `named` are parts of names of statics: the sum of their sizes is `flash.named`, and `flash.rest` is `flash` without
/// them.
///
/// # Errors
/// No static in flash has a part of `named` in its name.
pub fn sizes(file: &object::File<'_>, named: &[String]) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let mut flash = 0;
    let mut ram = 0;
    let mut parts = Vec::new();
    for section in file.sections() {
        if !has(&section, elf::SHF_ALLOC) || section.size() == 0 {
            continue;
        }
        if section.kind() != SectionKind::UninitializedData {
            flash += section.size();
            parts.push((part(section.name().unwrap_or_default()), section.size()));
        }
        if has(&section, elf::SHF_WRITE) {
            ram += section.size();
        }
    }
    figures.set("flash", flash);
    for (part, size) in parts {
        figures.add(&format!("flash.{part}"), size);
    }
    if !named.is_empty() {
        let data = statics(file, named)?;
        figures.set("flash.named", data);
        figures.set("flash.rest", flash.saturating_sub(data));
    }
    figures.set("ram", ram);
    Ok(figures)
}

fn has<'a>(section: &impl ObjectSection<'a>, flag: u32) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(flag) != 0)
}

fn part(section: &str) -> &str {
    match section {
        ".vector_table" => "vectors",
        name => name.trim_start_matches('.'),
    }
}

/// Returns the bytes of the constants whose names contain one of `named`.
fn statics(file: &object::File<'_>, named: &[String]) -> Result<u64, String> {
    let mut sum = 0;
    for part in named {
        let found: u64 = file
            .symbols()
            .filter(|symbol| {
                let section = symbol.section_index();
                let section = section.and_then(|index| file.section_by_index(index).ok());
                let constant = section.is_some_and(|section| {
                    has(&section, elf::SHF_ALLOC) && !has(&section, elf::SHF_WRITE)
                });
                constant
                    && format!("{:#}", demangle(symbol.name().unwrap_or_default())).contains(part)
            })
            .map(|symbol| symbol.size())
            .sum();
        if found == 0 {
            return Err(format!("no static in flash is named {part}"));
        }
        sum += found;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use object::write::{Object as Writer, StandardSection, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

    use super::*;

    fn image() -> Vec<u8> {
        let mut image = Writer::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let text = image.section_id(StandardSection::Text);
        image.append_section_data(text, &[0; 100], 4);
        let vectors = image.add_section(
            Vec::new(),
            b".vector_table".to_vec(),
            SectionKind::ReadOnlyData,
        );
        image.append_section_data(vectors, &[0; 64], 4);
        // As linkers write it if it contains strings.
        let rodata =
            image.add_section(Vec::new(), b".rodata".to_vec(), SectionKind::ReadOnlyString);
        image.append_section_data(rodata, &[0; 50], 1);
        image.add_symbol(Symbol {
            name: b"_RNvCs1_6motion5MODEL".to_vec(),
            value: 0,
            size: 30,
            kind: SymbolKind::Data,
            scope: SymbolScope::Compilation,
            weak: false,
            section: SymbolSection::Section(rodata),
            flags: SymbolFlags::None,
        });
        let data = image.section_id(StandardSection::Data);
        image.append_section_data(data, &[0; 12], 4);
        let bss = image.section_id(StandardSection::UninitializedData);
        image.append_section_bss(bss, 1000, 4);
        for name in [".debug_info", ".defmt"] {
            let other = image.add_section(Vec::new(), name.into(), SectionKind::Other);
            image.append_section_data(other, &[0; 9999], 1);
        }
        image.write().expect("an image")
    }

    fn figures(named: &[&str]) -> Result<Figures, String> {
        let image = image();
        let named: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
        sizes(&object::File::parse(&*image).expect("an image"), &named)
    }

    #[test]
    fn flash_is_what_is_loaded_and_ram_what_statics_take() {
        let figures = figures(&[]).expect("sizes");
        for (figure, size) in [
            ("flash", 226),
            ("flash.vectors", 64),
            ("flash.text", 100),
            ("flash.rodata", 50),
            ("flash.data", 12),
            ("ram", 1012),
        ] {
            assert_eq!(figures.get(figure), Some(size), "{figure}");
        }
        assert_eq!(figures.get("flash.named"), None);
        assert_eq!(figures.get("flash.defmt"), None);
    }

    #[test]
    fn named_statics_are_told_apart_and_must_exist() {
        let with = figures(&["motion::MODEL"]).expect("sizes");
        assert_eq!(with.get("flash.named"), Some(30));
        assert_eq!(with.get("flash.rest"), Some(196));
        let error = figures(&["motion::RECORDINGS"]).expect_err("none of that name");
        assert_eq!(error, "no static in flash is named motion::RECORDINGS");
    }
}
