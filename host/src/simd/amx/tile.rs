//! The tile instructions: a product of two tiles by two, in one piece of assembly.
//!
//! The eight tiles of a processor are used as four of sums (`tmm0` to `tmm3`), two of `a` (`tmm4`, `tmm5`) and two of
//! `b` (`tmm6`, `tmm7`). A step multiplies each of `a` with each of `b`: four loads of at most 1 KiB, four products. So
//! every load serves two products, and each sum is needed again only by the fourth product after its own: 64 cycles
//! later, more than the 52 that one takes.

use std::arch::asm;
use std::marker::PhantomData;

/// Rows of a tile.
pub(super) const HEIGHT: usize = 16;

/// Words of four bytes in a row of a tile.
pub(super) const WORDS: usize = 16;

/// The operand of `ldtilecfg`: palette 1, and the bytes per row and the rows of each tile.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// The shape of the products of one kernel: up to 16 rows of `a` in each of two tiles, four bytes of them for each row
/// of `b`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Rows of the first tile of `a`, 1 to 16.
    pub(super) first: usize,
    /// Rows of the second tile, at most 16; 0 if it is not used.
    pub(super) second: usize,
    /// Words of four bytes per step, 1 to 16: the width of `a`, the rows of `b`.
    pub(super) words: usize,
}

impl Shape {
    fn config(self) -> Config {
        assert!((1..=HEIGHT).contains(&self.first) && self.second <= HEIGHT);
        assert!((1..=WORDS).contains(&self.words));
        let (first, second, depth) = (self.first as u8, self.second as u8, self.words as u8);
        let (wide, narrow) = (4 * WORDS as u16, 4 * self.words as u16);
        // A tile without rows has 0 bytes per row.
        let of_second = |bytes| if second == 0 { 0 } else { bytes };
        let (wide_2, narrow_2) = (of_second(wide), of_second(narrow));
        let mut config = Config {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        config.rows[..8]
            .copy_from_slice(&[first, first, second, second, first, second, depth, depth]);
        config.row_bytes[..8]
            .copy_from_slice(&[wide, wide, wide_2, wide_2, narrow, narrow_2, wide, wide]);
        config
    }
}

/// Tiles that are configured for products of a shape, until it is dropped.
///
/// Only the configuration outlives a piece of assembly. It belongs to a thread, and systems keep it when another thread
/// runs. Nothing that is called between two products here uses tiles, and compilers do not use them; a library that
/// does configures them for itself, as every kernel here begins with its own `Tiles`.
#[derive(Debug)]
pub(super) struct Tiles {
    /// Prevents moving it to another thread.
    of: PhantomData<*const ()>,
}

impl Tiles {
    /// # Safety
    /// [`super::detect::available`] returned true.
    #[inline]
    pub(super) unsafe fn new(shape: Shape) -> Self {
        let config = shape.config();
        // SAFETY: 64 bytes are read; the shape is one that the instruction takes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly)) };
        Self { of: PhantomData }
    }
}

/// Releases the tiles, so that the system has none to save.
impl Drop for Tiles {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: whoever made this may use tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The place of the tiles of `a`: rows of signed bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// The first step's tile.
    pub(super) at: *const i8,
    /// The first step's second tile, if there are two.
    pub(super) second: Option<*const i8>,
    /// Bytes from a row to the next.
    pub(super) row: usize,
    /// Bytes from a step to the next.
    pub(super) step: usize,
}

/// The place of the tiles of `b`, two side by side with 64 bytes per row: four bytes of each of 16 columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right {
    /// The first step's tiles.
    pub(super) at: *const u8,
    /// True if the bytes are signed.
    pub(super) signed: bool,
    /// Bytes from a row to the next.
    pub(super) row: usize,
    /// Bytes from a step to the next.
    pub(super) step: usize,
}

impl Tiles {
    /// Writes the sums of `steps` products, or if `ADD`, adds them to the existing sums: for each row of `a`, 32 sums,
    /// `sums_row` bytes after those of the row before. The sums of the second tile of `a` are [`HEIGHT`] rows after
    /// those of the first. Modulo 2³²: no product saturates.
    ///
    /// # Safety
    /// `steps` is not 0; each side can be read, and the sums written (and read, to add), for the shape that the tiles
    /// were made for, which has rows for a second tile if there is one.
    #[inline]
    pub(super) unsafe fn multiply<const ADD: bool>(
        &self,
        a: Left,
        b: Right,
        steps: usize,
        sums: *mut i32,
        sums_row: usize,
    ) {
        /// Initializes a tile of sums.
        macro_rules! begin {
            (zero, $tile:literal, $at:literal) => {
                concat!("tilezero ", $tile)
            };
            (sums, $tile:literal, $at:literal) => {
                concat!("tileloadd ", $tile, ", ", $at)
            };
        }
        macro_rules! one {
            ($product:literal, $begin:ident) => {
                asm!(
                    begin!($begin, "tmm0", "[{sums} + {row}]"),
                    begin!($begin, "tmm1", "[{sums} + {row} + 64]"),
                    "2:",
                    "tileloadd tmm6, [{b} + {b_row}]",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    "tileloadd tmm7, [{b} + {b_row} + 64]",
                    concat!($product, " tmm0, tmm4, tmm6"),
                    "add {a}, {a_step}",
                    "add {b}, {b_step}",
                    concat!($product, " tmm1, tmm4, tmm7"),
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 64], tmm1",
                    a = inout(reg) a.at => _,
                    a_row = in(reg) a.row,
                    a_step = in(reg) a.step,
                    b = inout(reg) b.at => _,
                    b_row = in(reg) b.row,
                    b_step = in(reg) b.step,
                    steps = inout(reg) steps => _,
                    sums = in(reg) sums,
                    row = in(reg) sums_row,
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                )
            };
        }
        macro_rules! two {
            ($product:literal, $begin:ident, $second:ident, $second_sums:ident) => {
                asm!(
                    begin!($begin, "tmm0", "[{sums} + {row}]"),
                    begin!($begin, "tmm1", "[{sums} + {row} + 64]"),
                    begin!($begin, "tmm2", "[{second_sums} + {row}]"),
                    begin!($begin, "tmm3", "[{second_sums} + {row} + 64]"),
                    "2:",
                    "tileloadd tmm6, [{b} + {b_row}]",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    "tileloadd tmm7, [{b} + {b_row} + 64]",
                    concat!($product, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm5, [{second} + {a_row}]",
                    concat!($product, " tmm1, tmm4, tmm7"),
                    "add {a}, {a_step}",
                    "add {second}, {a_step}",
                    concat!($product, " tmm2, tmm5, tmm6"),
                    "add {b}, {b_step}",
                    concat!($product, " tmm3, tmm5, tmm7"),
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 64], tmm1",
                    "tilestored [{second_sums} + {row}], tmm2",
                    "tilestored [{second_sums} + {row} + 64], tmm3",
                    a = inout(reg) a.at => _,
                    second = inout(reg) $second => _,
                    a_row = in(reg) a.row,
                    a_step = in(reg) a.step,
                    b = inout(reg) b.at => _,
                    b_row = in(reg) b.row,
                    b_step = in(reg) b.step,
                    steps = inout(reg) steps => _,
                    sums = in(reg) sums,
                    second_sums = in(reg) $second_sums,
                    row = in(reg) sums_row,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                )
            };
        }
        // SAFETY: `self` stands for the configuration; the rest is the caller's promise. All tiles that are written are
        // named, and none is read that was not written here.
        unsafe {
            match (a.second, b.signed) {
                (Some(second), signed) => {
                    let second_sums = sums.byte_add(HEIGHT * sums_row);
                    match (signed, ADD) {
                        (true, true) => two!("tdpbssd", sums, second, second_sums),
                        (true, false) => two!("tdpbssd", zero, second, second_sums),
                        (false, true) => two!("tdpbsud", sums, second, second_sums),
                        (false, false) => two!("tdpbsud", zero, second, second_sums),
                    }
                }
                (None, true) if ADD => one!("tdpbssd", sums),
                (None, true) => one!("tdpbssd", zero),
                (None, false) if ADD => one!("tdpbsud", sums),
                (None, false) => one!("tdpbsud", zero),
            }
        }
    }
}

/// The place of panels of centroids: for each word of a step, four bytes of each of 16 columns, or of 32 columns of two
/// tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// The first step's tiles.
    pub(super) at: *const i32,
    /// The initial sum of each column.
    pub(super) starts: *const i32,
    /// Bytes from a step to the next.
    pub(super) step: usize,
}

impl Tiles {
    /// Writes the sums of `steps` products of 32 rows of `a` with a panel of two tiles, or of one, tile after tile: for
    /// each tile of the panel 32 rows of 16 sums. Modulo 2³².
    ///
    /// # Safety
    /// The tiles were made for two times 16 rows. `steps` is not 0; `a` and the panel can be read for the shape, 16 or
    /// 32 starts too, and 512 or 1024 sums written.
    #[inline]
    pub(super) unsafe fn panel<const TWO: bool>(
        &self,
        a: Left,
        b: Panel,
        steps: usize,
        sums: *mut i32,
    ) {
        let second = a.second.unwrap_or(a.at);
        // A tile whose rows are the same 64 bytes: no stride.
        //
        // SAFETY: `self` stands for the configuration; the rest is the caller's promise. All tiles that are written are
        // named, and none is read that was not written here.
        unsafe {
            if TWO {
                asm!(
                    "tileloadd tmm0, [{starts} + {none}]",
                    "tileloadd tmm1, [{starts} + {none} + 64]",
                    "tileloadd tmm2, [{starts} + {none}]",
                    "tileloadd tmm3, [{starts} + {none} + 64]",
                    "2:",
                    "tileloadd tmm6, [{b} + {b_row}]",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    "tileloadd tmm7, [{b} + {b_row} + 64]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{second} + {a_row}]",
                    "tdpbssd tmm1, tmm4, tmm7",
                    "add {a}, {a_step}",
                    "add {second}, {a_step}",
                    "tdpbssd tmm2, tmm5, tmm6",
                    "add {b}, {b_step}",
                    "tdpbssd tmm3, tmm5, tmm7",
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 2048], tmm1",
                    "tilestored [{sums} + {row} + 1024], tmm2",
                    "tilestored [{sums} + {row} + 3072], tmm3",
                    a = inout(reg) a.at => _,
                    second = inout(reg) second => _,
                    a_row = in(reg) a.row,
                    a_step = in(reg) a.step,
                    b = inout(reg) b.at => _,
                    b_row = in(reg) 128usize,
                    b_step = in(reg) b.step,
                    steps = inout(reg) steps => _,
                    starts = in(reg) b.starts,
                    none = in(reg) 0usize,
                    sums = in(reg) sums,
                    row = in(reg) 64usize,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            } else {
                asm!(
                    "tileloadd tmm0, [{starts} + {none}]",
                    "tileloadd tmm2, [{starts} + {none}]",
                    "2:",
                    "tileloadd tmm6, [{b} + {row}]",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{second} + {a_row}]",
                    "add {a}, {a_step}",
                    "add {second}, {a_step}",
                    "add {b}, {b_step}",
                    "tdpbssd tmm2, tmm5, tmm6",
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 1024], tmm2",
                    a = inout(reg) a.at => _,
                    second = inout(reg) second => _,
                    a_row = in(reg) a.row,
                    a_step = in(reg) a.step,
                    b = inout(reg) b.at => _,
                    b_step = in(reg) b.step,
                    steps = inout(reg) steps => _,
                    starts = in(reg) b.starts,
                    none = in(reg) 0usize,
                    sums = in(reg) sums,
                    row = in(reg) 64usize,
                    out("tmm0") _, out("tmm2") _, out("tmm4") _, out("tmm5") _, out("tmm6") _,
                    options(nostack),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(first: usize, second: usize, words: usize) -> ([u16; 16], [u8; 16]) {
        let shape = Shape {
            first,
            second,
            words,
        };
        let config = shape.config();
        assert_eq!(
            (size_of::<Config>(), config.palette, config.start_row),
            (64, 1, 0)
        );
        assert_eq!(std::mem::offset_of!(Config, row_bytes), 16);
        assert_eq!(std::mem::offset_of!(Config, rows), 48);
        assert_eq!(config.reserved, [0; 14]);
        assert_eq!(
            (&config.row_bytes[8..], &config.rows[8..]),
            (&[0; 8][..], &[0; 8][..])
        );
        (config.row_bytes, config.rows)
    }

    #[test]
    fn a_configuration_has_the_shapes_of_all_tiles() {
        let (bytes, rows) = config(16, 3, 9);
        assert_eq!(bytes[..8], [64, 64, 64, 64, 36, 36, 64, 64]);
        assert_eq!(rows[..8], [16, 16, 3, 3, 16, 3, 9, 9]);
        // A tile has both rows and bytes, or neither: `ldtilecfg` refuses others.
        let (bytes, rows) = config(1, 0, 16);
        assert_eq!(bytes[..8], [64, 64, 0, 0, 64, 0, 64, 64]);
        assert_eq!(rows[..8], [1, 1, 0, 0, 1, 0, 16, 16]);
    }

    #[test]
    #[should_panic]
    fn more_rows_than_a_tile_has_are_refused() {
        config(17, 0, 1);
    }
}
