//! Computes the size of the code that a function brings into an image.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile32;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolKind};

/// The functions and constants of an image, and the references between them.
///
/// The image was linked with `--emit-relocs`, so every place where code refers to another symbol is recorded.
#[derive(Debug)]
pub struct Code {
    /// By address: size, and the addresses that are referred to.
    parts: BTreeMap<u64, SymbolSize>,
}

#[derive(Debug, Default)]
struct SymbolSize {
    size: u64,
    names: BTreeSet<u64>,
}

impl Code {
    /// Reads an image.
    ///
    /// # Errors
    /// The image is not a 32-bit ELF file, or was linked without `--emit-relocs`.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let file: ElfFile32<'_> = ElfFile32::parse(bytes).map_err(|error| error.to_string())?;
        // Bit 0 of a function's address marks Thumb code on Arm, and is never set elsewhere.
        let even = |address: u64| address & !1;
        let mut parts = BTreeMap::<u64, SymbolSize>::new();
        for symbol in file.symbols() {
            let section = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok());
            let in_flash = section.is_some_and(|section| {
                matches!(
                    section.kind(),
                    SectionKind::Text | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString
                )
            });
            if in_flash
                && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data)
                && symbol.size() > 0
            {
                let part = parts.entry(even(symbol.address())).or_default();
                part.size = part.size.max(symbol.size());
            }
        }
        let mut relocations = 0;
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            for (offset, relocation) in section.relocations() {
                relocations += 1;
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    continue;
                };
                let Ok(target) = file.symbol_by_index(index) else {
                    continue;
                };
                if let Some((&start, part)) = parts.range_mut(..=offset).next_back()
                    && offset < start + part.size
                {
                    part.names.insert(even(target.address()));
                }
            }
        }
        if relocations == 0 {
            return Err("the image was linked without --emit-relocs".to_owned());
        }
        Ok(Self { parts })
    }

    /// Returns the bytes of the function at an address and of all functions and constants that it refers to, directly
    /// or indirectly.
    ///
    /// # Errors
    /// No function begins at the address.
    pub fn reachable(&self, address: u64) -> Result<u64, String> {
        let root = address & !1;
        if !self.parts.contains_key(&root) {
            return Err(format!("no function begins at {address:#x}"));
        }
        let mut seen = BTreeSet::from([root]);
        let mut waiting = vec![root];
        let mut bytes = 0;
        while let Some(part) = waiting.pop().and_then(|address| self.parts.get(&address)) {
            bytes += part.size;
            waiting.extend(
                part.names
                    .iter()
                    .filter(|&&name| self.parts.contains_key(&name) && seen.insert(name)),
            );
        }
        Ok(bytes)
    }
}
