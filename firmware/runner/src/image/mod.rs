//! The content of an image, read from its ELF file.

mod code;
mod guard;
mod sizes;

pub use guard::violations;
pub use sizes::sizes;

use object::{Object, ObjectSection};

/// Returns the compiler that made an image, from its signature there.
pub fn compiler(file: &object::File<'_>) -> Option<String> {
    let comment = file.section_by_name(".comment")?;
    let text = String::from_utf8_lossy(comment.data().ok()?).into_owned();
    let mut parts = text.split('\0');
    parts
        .find(|part| part.starts_with("rustc version "))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use object::write::Object as Writer;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    use super::*;

    #[test]
    fn the_compiler_is_the_one_that_signed_and_not_the_linker() {
        let mut image = Writer::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let comment = image.add_section(Vec::new(), b".comment".to_vec(), SectionKind::OtherString);
        image.append_section_data(comment, b"\0Linker: LLD 22\0rustc version 1.96.0 (x)\0", 1);
        let bytes = image.write().expect("an image");
        let file = object::File::parse(&*bytes).expect("an image");
        assert_eq!(compiler(&file), Some("rustc version 1.96.0 (x)".to_owned()));
    }
}
