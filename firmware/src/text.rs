//! Text through semihosting without `core::fmt`, whose code is larger than most programs here and can panic.

#[cfg(target_arch = "arm")]
use cortex_m_semihosting::hio::{self, HostStream};
#[cfg(target_arch = "riscv32")]
use riscv_semihosting::hio::{self, HostStream};

/// A line that is being written. If no debugger listens, nothing is written.
pub struct Text {
    out: Option<HostStream>,
}

impl Default for Text {
    fn default() -> Self {
        Self::new()
    }
}

impl Text {
    /// Begins a line.
    pub fn new() -> Self {
        Self {
            out: hio::hstdout().ok(),
        }
    }

    /// Begins a line of the debugger's other stream, stderr, which is free even if defmt's frames go to stdout.
    pub fn error() -> Self {
        Self {
            out: hio::hstderr().ok(),
        }
    }

    /// Adds text.
    pub fn str(mut self, text: &str) -> Self {
        self.bytes(text.as_bytes());
        self
    }

    /// Adds a number.
    pub fn number(mut self, number: u32) -> Self {
        let mut digits = [0; 10];
        let mut rest = number;
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
            if rest == 0 {
                break;
            }
        }
        self.bytes(digits.get(10 - used..).unwrap_or_default());
        self
    }

    /// Adds 16 hexadecimal digits.
    pub fn hex(mut self, number: u64) -> Self {
        let mut digits = [0; 16];
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            let nibble = (number >> (4 * place)) as u8 & 15;
            *digit = nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
        }
        self.bytes(&digits);
        self
    }

    /// Ends the line.
    pub fn end(mut self) {
        self.bytes(b"\n");
    }

    /// Adds bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            let _ = out.write_all(bytes);
        }
    }
}
