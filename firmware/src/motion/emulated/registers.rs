//! The register file of an LSM6DSOX, as far as a program can distinguish it from plain memory (ST, datasheet DS12814,
//! section 9).

/// Number of registers on a page.
const COUNT: usize = 128;

pub(super) const WHO_AM_I: u8 = 0x0F;
pub(super) const CTRL1_XL: u8 = 0x10;
pub(super) const CTRL2_G: u8 = 0x11;
pub(super) const CTRL3_C: u8 = 0x12;
const CTRL9_XL: u8 = 0x18;
pub(super) const STATUS: u8 = 0x1E;
const OUT_TEMP_L: u8 = 0x20;
pub(super) const OUTX_L_G: u8 = 0x22;
pub(super) const OUTX_L_A: u8 = 0x28;
/// The last of the output registers.
pub(super) const OUTZ_H_A: u8 = 0x2D;

/// Bit of [`CTRL3_C`]: bursts continue at the next register.
const IF_INC: u8 = 1 << 2;
/// Bit of [`CTRL3_C`]: starts a reset; reads as 1 until the reset is done.
const SW_RESET: u8 = 1;

/// A page of registers.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    bytes: [u8; COUNT],
}

impl Registers {
    /// Returns the registers after power-up.
    pub(super) const fn new() -> Self {
        let mut bytes = [0; COUNT];
        bytes[WHO_AM_I as usize] = 0x6C;
        bytes[CTRL3_C as usize] = IF_INC;
        bytes[CTRL9_XL as usize] = 0xE0;
        Self { bytes }
    }

    pub(super) fn get(&self, register: u8) -> u8 {
        let byte = self.bytes.get(usize::from(register));
        byte.copied().unwrap_or(0)
    }

    /// Writes to a register as the sensor does: only writable ones change. Returns true if this starts a reset.
    pub(super) fn set(&mut self, register: u8, value: u8) -> bool {
        if matches!(register, WHO_AM_I | STATUS | OUT_TEMP_L..=OUTZ_H_A) {
            return false;
        }
        if register == CTRL3_C && value & SW_RESET != 0 {
            *self = Self::new();
            self.put(CTRL3_C, IF_INC | SW_RESET);
            return true;
        }
        self.put(register, value);
        false
    }

    /// Ends a reset.
    pub(super) fn settle(&mut self) {
        self.put(CTRL3_C, self.get(CTRL3_C) & !SW_RESET);
    }

    /// Returns the register at which a burst continues after a register.
    pub(super) fn after(&self, register: u8) -> u8 {
        match self.get(CTRL3_C) & IF_INC {
            0 => register,
            _ => register.wrapping_add(1) % COUNT as u8,
        }
    }

    fn put(&mut self, register: u8, value: u8) {
        if let Some(byte) = self.bytes.get_mut(usize::from(register)) {
            *byte = value;
        }
    }
}
