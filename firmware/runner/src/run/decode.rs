//! Decodes the output of a program into lines.

use std::fmt;

use defmt_decoder::{DecodeError, Table};

/// The form of an image's output: frames of defmt if the image contains their strings, else text.
pub struct Decoder {
    table: Option<Table>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defmt = self.table.is_some();
        f.debug_struct("Decoder").field("defmt", &defmt).finish()
    }
}

impl Decoder {
    /// Finds the form of an image's output.
    ///
    /// # Errors
    /// Its frames have another version than this decoder.
    pub fn new(image: &[u8]) -> Result<Self, String> {
        let table = Table::parse(image).map_err(|error| format!("defmt: {error:#}"))?;
        let table = table.filter(|table| !table.is_empty());
        Ok(Self { table })
    }

    /// Reads bytes from `next` until it returns none, and passes every line to `line`.
    ///
    /// A frame is a line: its level, if it has one, and its message. A frame of several lines becomes several lines,
    /// the first of which has the level.
    ///
    /// # Errors
    /// The bytes are not frames, because something else writes to the same stream.
    pub fn lines(
        &self,
        mut next: impl FnMut() -> Option<Vec<u8>>,
        mut line: impl FnMut(&str),
    ) -> Result<(), String> {
        let Some(table) = &self.table else {
            text(next, line);
            return Ok(());
        };
        let mut decoder = table.new_stream_decoder();
        let mut broken = 0;
        while let Some(bytes) = next() {
            decoder.received(&bytes);
            loop {
                match decoder.decode() {
                    Ok(frame) => {
                        let message = frame.display_message().to_string();
                        let level = frame.level().map(|level| level.as_str().to_uppercase());
                        let head = level.map(|level| format!("{level} ")).unwrap_or_default();
                        for (number, part) in message.lines().enumerate() {
                            line(&format!("{}{part}", if number == 0 { &head } else { "" }));
                        }
                    }
                    Err(DecodeError::UnexpectedEof) => break,
                    Err(DecodeError::Malformed) => {
                        broken += 1;
                        if !table.encoding().can_recover() {
                            break;
                        }
                    }
                }
            }
        }
        if broken > 0 {
            return Err(format!("broken frames of defmt: {broken}"));
        }
        Ok(())
    }
}

fn text(mut next: impl FnMut() -> Option<Vec<u8>>, mut line: impl FnMut(&str)) {
    let mut rest = Vec::new();
    let mut give = |bytes: &[u8]| {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        line(&String::from_utf8_lossy(bytes));
    };
    while let Some(bytes) = next() {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            give(&rest[..end]);
            rest.drain(..=end);
        }
    }
    if !rest.is_empty() {
        give(&rest);
    }
}

#[cfg(test)]
mod tests {
    use object::write::{Object, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

    use super::*;

    /// Returns an image with the strings of defmt, each at the address that is its index.
    fn image(strings: &[(u64, &str, &str)]) -> Vec<u8> {
        let mut file = Object::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let section = file.add_section(Vec::new(), b".defmt".to_vec(), object::SectionKind::Other);
        file.append_section_data(section, &[0; 16], 1);
        let mut symbol = |name: String, value, section| {
            file.add_symbol(Symbol {
                name: name.into_bytes(),
                value,
                size: 1,
                kind: SymbolKind::Data,
                scope: SymbolScope::Linkage,
                weak: false,
                section,
                flags: SymbolFlags::None,
            });
        };
        for &(index, tag, data) in strings {
            let name = format!(
                r#"{{"package":"p","tag":"{tag}","data":"{data}","disambiguator":"{index}","crate_name":"c"}}"#
            );
            symbol(name, index, SymbolSection::Section(section));
        }
        symbol(
            "_defmt_version_ = 4".to_owned(),
            9,
            SymbolSection::Section(section),
        );
        symbol(
            "_defmt_encoding_ = rzcobs".to_owned(),
            10,
            SymbolSection::Section(section),
        );
        file.write().expect("an image")
    }

    fn decode(image: &[u8], pieces: &[&[u8]]) -> (Vec<String>, Result<(), String>) {
        let mut lines = Vec::new();
        let mut pieces = pieces.iter();
        let end = Decoder::new(image).expect("a decoder").lines(
            || pieces.next().map(|piece| piece.to_vec()),
            |line| lines.push(line.to_owned()),
        );
        (lines, end)
    }

    /// Returns one block of reverse zero-compressed COBS for a frame of at most seven bytes: its nonzero bytes, then a
    /// mask of its zero bytes, then the end.
    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != 0).collect();
        let zeros = (0..7).filter(|&at| bytes.get(at).is_none_or(|&byte| byte == 0));
        out.push(zeros.map(|at| 1 << at).sum());
        out.push(0);
        out
    }

    #[test]
    fn frames_become_lines_with_their_level_wherever_the_bytes_are_cut() {
        let image = image(&[
            (2, "defmt_info", "window {=u8} of {=u16}"),
            (3, "defmt_println", "# stack {=u8}"),
        ]);
        let bytes = [frame(&[2, 0, 7, 0x34, 0x12]), frame(&[3, 0, 200])].concat();
        let expected = vec!["INFO window 7 of 4660".to_owned(), "# stack 200".to_owned()];
        for cut in 0..bytes.len() {
            let (start, end) = bytes.split_at(cut);
            assert_eq!(decode(&image, &[start, end]), (expected.clone(), Ok(())));
        }
    }

    #[test]
    fn text_between_frames_is_an_error_and_the_frames_still_come() {
        let image = image(&[(2, "defmt_info", "on")]);
        let bytes = [frame(&[2, 0]), b"panicked\n\0".to_vec(), frame(&[2, 0])].concat();
        let (lines, end) = decode(&image, &[&bytes]);
        assert_eq!(lines, ["INFO on", "INFO on"]);
        assert_eq!(end, Err("broken frames of defmt: 1".to_owned()));
    }

    #[test]
    fn an_image_without_strings_of_defmt_writes_text() {
        let image = Object::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let image = image.write().expect("an image");
        let (lines, end) = decode(&image, &[b"one\r\ntw", b"o\n", b"three"]);
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(end, Ok(()));
    }
}
