//! Restores keys and values that were stored elsewhere, for example in a file. Sums stay exact for any content.

use super::{Cache, CacheType, Codes, PAGE, PageCodes, Shape, part_mut};
use crate::model::ModelError;
use crate::quant::activations::Code;

impl Cache<'_> {
    /// Fills the first positions of a page that a sequence holds, for a layer and a head, with keys and values from
    /// [`Cache::keys`] and [`Cache::values`]: as many positions as there are scales, at most 64.
    ///
    /// # Errors
    /// [`ModelError::Stored`] in these cases: codes differ from the cache's in width or number; codes or scales are
    /// such that no cache writes them (their sums could exceed 64 bits); or the page, layer or head does not exist.
    /// The page is then unchanged.
    pub fn load(
        &mut self,
        (page, layer, head): (u32, usize, usize),
        keys: (PageCodes<'_>, &[f32]),
        values: (PageCodes<'_>, &[f32]),
    ) -> Result<(), ModelError> {
        let shape = self.shape;
        let fits = (page as usize) < self.free.len() && layer < shape.layers && head < shape.heads;
        if !fits || keys.1.len() != values.1.len() || keys.1.len() > PAGE as usize {
            return Err(ModelError::Stored {
                expected: "of one page of this cache",
            });
        }
        let place = self.place(page, layer, head);
        check(&shape, &self.keys, keys)?;
        check(&shape, &self.values, values)?;
        copy(&mut self.keys, self.key_scales, place, shape.head, keys);
        copy(
            &mut self.values,
            self.value_scales,
            place,
            shape.head,
            values,
        );
        Ok(())
    }
}

/// Fails unless a cache could have stored these positions: codes within the range of their type, scales finite and
/// not below 0.
fn check(
    shape: &Shape,
    kept: &Codes<'_>,
    (codes, scales): (PageCodes<'_>, &[f32]),
) -> Result<(), ModelError> {
    let needed = scales.len().saturating_mul(shape.head);
    let (count, within) = match (kept, codes) {
        (Codes::Narrow(_), PageCodes::Narrow(codes)) => {
            // In an FP8 pattern, all bits except the sign set is not a number. A byte of -128 is -0 in FP8, and
            // outside the range of int8 codes.
            let fp8 = |&code: &i8| code & 0x7F != 0x7F;
            let within = match shape.kind {
                CacheType::Fp8 => codes.iter().all(fp8),
                _ => codes.iter().all(|&code| code != i8::MIN),
            };
            (codes.len(), within)
        }
        (Codes::Wide(_), PageCodes::Wide(codes)) => {
            let limit = <i16 as Code>::LIMIT as u16;
            (
                codes.len(),
                codes.iter().all(|&code| code.unsigned_abs() <= limit),
            )
        }
        _ => (usize::MAX, false),
    };
    let expected = match () {
        () if count != needed => "as many codes of the cache's width as scales ask for",
        () if !within => "codes within the range of the cache's type",
        () if !scales
            .iter()
            .all(|&scale| (0.0..f32::INFINITY).contains(&scale)) =>
        {
            "scales that are finite and not below 0"
        }
        () => return Ok(()),
    };
    Err(ModelError::Stored { expected })
}

fn copy(
    kept: &mut Codes<'_>,
    kept_scales: &mut [f32],
    place: usize,
    head: usize,
    (codes, scales): (PageCodes<'_>, &[f32]),
) {
    let first = place.wrapping_mul(head);
    match (kept, codes) {
        (Codes::Narrow(kept), PageCodes::Narrow(codes)) => fill(kept, first, codes),
        (Codes::Wide(kept), PageCodes::Wide(codes)) => fill(kept, first, codes),
        // Checked before.
        _ => {}
    }
    fill(kept_scales, place, scales);
}

fn fill<T: Copy>(all: &mut [T], first: usize, values: &[T]) {
    let slots = part_mut(all, first, values.len());
    for (slot, &value) in slots.iter_mut().zip(values) {
        *slot = value;
    }
}
