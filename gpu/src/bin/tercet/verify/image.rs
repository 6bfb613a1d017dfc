//! Checks that a file is a program for a board's processor, from the first bytes of its ELF header.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::board::Processor;

/// Bytes up to and including `e_version`.
const HEAD: usize = 24;
const EXECUTABLE: u16 = 2;
const ARM: u16 = 40;
const RISCV: u16 = 243;

/// Refuses a file that the emulator could not run, with the reason in words.
pub(super) fn check(path: &Path, processor: Processor) -> Result<(), String> {
    let mut head = Vec::with_capacity(HEAD);
    let wrong = |error: std::io::Error| format!("cannot read: {error}");
    let file = File::open(path).map_err(wrong)?;
    if !file.metadata().map_err(wrong)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    file.take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(wrong)?;
    read(&head, processor)
}

fn read(head: &[u8], processor: Processor) -> Result<(), String> {
    let half = |at: usize| Some(u16::from_le_bytes([*head.get(at)?, *head.get(at + 1)?]));
    if !head.starts_with(b"\x7fELF") {
        return Err("not an ELF image".to_owned());
    }
    let (Some(kind), Some(machine), HEAD) = (half(16), half(18), head.len()) else {
        return Err("an ELF image that is cut off".to_owned());
    };
    // 32 bits, lowest byte first.
    if head[4..6] != [1, 1] || kind != EXECUTABLE {
        return Err("an ELF file, but not a program for a microcontroller".to_owned());
    }
    let found = match machine {
        ARM => Processor::Arm,
        RISCV => Processor::Riscv32,
        other => return Err(format!("an image for a processor with ELF number {other}")),
    };
    if found == processor {
        return Ok(());
    }
    let (found, wanted) = (found.emulator(), processor.emulator());
    Err(format!("an image for {found}, and the board's is {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(class: u8, kind: u16, machine: u16) -> Vec<u8> {
        let mut head = b"\x7fELF\x01\x01\x01".to_vec();
        head[4] = class;
        head.resize(16, 0);
        head.extend(kind.to_le_bytes());
        head.extend(machine.to_le_bytes());
        head.extend(1u32.to_le_bytes());
        head
    }

    #[test]
    fn only_programs_of_the_board_s_processor_pass() {
        let arm = head(1, EXECUTABLE, ARM);
        assert_eq!(read(&arm, Processor::Arm), Ok(()));
        assert_eq!(
            read(&head(1, EXECUTABLE, RISCV), Processor::Riscv32),
            Ok(())
        );
        for (head, reason) in [
            (&b"#!/bin/sh\n"[..], "not an ELF image"),
            (&[], "not an ELF image"),
            (&arm[..20], "cut off"),
            (
                &head(2, EXECUTABLE, 62),
                "not a program for a microcontroller",
            ),
            (&head(1, 3, ARM), "not a program for a microcontroller"),
            (&head(1, EXECUTABLE, 8), "ELF number 8"),
            (
                &head(1, EXECUTABLE, RISCV),
                "qemu-system-riscv32, and the board's is qemu-system-arm",
            ),
        ] {
            let error = read(head, Processor::Arm).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
