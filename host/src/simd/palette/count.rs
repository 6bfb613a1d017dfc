//! Counts how often each code occurs.

use tercet_core::palette::Counts;

/// Tables that are used in turn, so that a repeated code does not wait for its last count to be written.
const TABLES: usize = 4;

/// Codes that are counted in 32 bits at a time.
const RUN: usize = 1 << 24;

/// As [`Counts::add_codes`] for codes that count once each, added to empty counts.
pub(crate) fn count(codes: &[i8]) -> Counts {
    let mut weights = [0u64; 256];
    for codes in codes.chunks(RUN) {
        let mut tables = [[0u32; 256]; TABLES];
        let (eights, rest) = codes.as_chunks::<8>();
        for eight in eights {
            // One load, then bytes by shifts.
            let word = u64::from_le_bytes(eight.map(|code| code as u8));
            for at in 0..8 {
                tables[at % TABLES][usize::from((word >> (8 * at)) as u8)] += 1;
            }
        }
        for &code in rest {
            tables[0][usize::from(code as u8)] += 1;
        }
        for (place, weight) in weights.iter_mut().enumerate() {
            // Code c is at c + 128.
            *weight += (tables.iter())
                .map(|table| u64::from(table[place ^ 0x80]))
                .sum::<u64>();
        }
    }
    Counts::of(weights)
}
