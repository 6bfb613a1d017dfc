//! What a device learns of its wearer: changes to the logits of letters.
//!
//! The model in flash stays as it is. An [`Adapter`] adds to the logit of each letter a number of its own and one that
//! depends on the letter before. While it learns, each letter that comes moves both against the gradient of its
//! surprisal ([`loss`](tercet_core::train::loss), the rule by which the model was trained): dynamic evaluation (Krause
//! and others, 2017, [arXiv:1709.07432](https://arxiv.org/abs/1709.07432)) of the output layer alone.
//!
//! Numbers are integers in units of 2⁻¹¹. A step is a product of the gradient by a power of two, rounded toward zero, so
//! it is the same on every machine.

use tercet_core::gguf::{Reader, Refusal, Sink, TensorInfo, TensorSpec, Value, WriteError, Writer};

use super::LETTERS;

/// Rows of an adapter: one for all letters, one for the first of a sequence, and one for those after each letter.
const ROWS: usize = LETTERS + 2;

/// The row of letters that are the first of a sequence.
pub(super) const FIRST: usize = 1;

/// The largest number of tensors of a file that [`Adapter::write`] writes.
pub const TENSORS: usize = 16;

/// A unit of an adapter's numbers.
const UNIT: f32 = 1.0 / 2048.0;

/// Units by which a gradient of 1 changes the number of all letters (a learning rate of 1/4), and that of those after
/// one letter (1/2). Chosen on the training half among pairs of 0 to 1/2 and 0 to 1.
const STEPS: [f32; 2] = [512.0, 1024.0];

/// Changes to the logits of letters, which a device learns. Zeros change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    rows: [[i16; LETTERS]; ROWS],
}

impl Default for Adapter {
    fn default() -> Self {
        Self::new()
    }
}

impl Adapter {
    /// The name of the array in a file's metadata: 66 × 64 numbers of 16 bits.
    pub const KEY: &str = "motion.adapter";

    /// Makes one that has learned nothing.
    pub const fn new() -> Self {
        Self {
            rows: [[0; LETTERS]; ROWS],
        }
    }

    /// Reads what an adapter has learned in the metadata of a model's file. `None` if no array of that length and type is
    /// there.
    pub fn read(file: &Reader<'_>) -> Option<Self> {
        let array = file.get(Self::KEY)?.as_array()?;
        let mut adapter = Self::new();
        let numbers = adapter.rows.as_flattened_mut();
        if array.len() != numbers.len() {
            return None;
        }
        for (number, value) in numbers.iter_mut().zip(&array) {
            let Value::I16(value) = value else {
                return None;
            };
            *number = value;
        }
        Some(adapter)
    }

    /// Writes a model's file of up to [`TENSORS`] tensors to a sink, with what was learned as one more array of its
    /// metadata, which [`Adapter::read`] finds. Programs that do not look for it, `tercet` and llama.cpp among them, read
    /// the same model as before. Returns the sink.
    ///
    /// # Errors
    /// Those of the sink; [`Refusal::Order`] for more tensors, or none.
    pub fn write<S: Sink>(&self, file: &Reader<'_>, sink: S) -> Result<S, WriteError<S::Error>> {
        let mut tensors = file.tensors().map(spec);
        let count = tensors.len();
        let first = tensors.next().ok_or(Refusal::Order { tensor: 0 })?;
        let mut specs = [first; TENSORS];
        for (place, spec) in specs.iter_mut().skip(1).zip(tensors) {
            *place = spec;
        }
        let tensor = TENSORS as u64;
        let specs = specs.get(..count).ok_or(Refusal::Order { tensor })?;
        let own = file.metadata().filter(|(key, _)| *key != Self::KEY);
        let mut writer = Writer::new(sink, own.clone().count() as u64 + 1, specs)?;
        for (key, value) in own {
            writer.entry(key, value)?;
        }
        writer.entry(Self::KEY, Value::Array(self.numbers().into()))?;
        let mut data = writer.into_data()?;
        for tensor in file.tensors() {
            data.begin(tensor.name)?;
            data.write(tensor.data)?;
        }
        Ok(data.finish()?)
    }

    /// Returns its numbers, in units of 2⁻¹¹: those of all letters, those of first letters, and those after each letter.
    pub fn numbers(&self) -> &[i16] {
        self.rows.as_flattened()
    }

    /// Returns the row of letters after the one with this place in the alphabet.
    pub(super) const fn after(place: usize) -> usize {
        FIRST + 1 + place
    }

    /// Adds its numbers to the logits of letters, those of one row and those of all.
    pub(super) fn add(&self, row: usize, logits: &mut [f32; LETTERS]) {
        let (Some(all), Some(own)) = (self.rows.first(), self.rows.get(row)) else {
            return;
        };
        for ((logit, all), own) in logits.iter_mut().zip(all).zip(own) {
            *logit += (i32::from(*all) + i32::from(*own)) as f32 * UNIT;
        }
    }

    /// Moves the numbers of one row and those of all against a gradient of the logits.
    pub(super) fn learn(&mut self, row: usize, gradient: &[f32; LETTERS]) {
        for (row, step) in [0, row].into_iter().zip(STEPS) {
            let Some(numbers) = self.rows.get_mut(row) else {
                continue;
            };
            for (number, slope) in numbers.iter_mut().zip(gradient) {
                *number = number.saturating_sub((slope * step) as i16);
            }
        }
    }
}

fn spec(tensor: TensorInfo<'_>) -> TensorSpec<'_> {
    TensorSpec {
        name: tensor.name,
        shape: tensor.shape,
        kind: tensor.kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_against_the_gradient_in_its_row_and_that_of_all() {
        let mut adapter = Adapter::new();
        let mut gradient = [0.0; LETTERS];
        (gradient[0], gradient[1]) = (-0.75, 0.001);
        adapter.learn(Adapter::after(2), &gradient);
        let logits = |row| {
            let mut logits = [1.0; LETTERS];
            adapter.add(row, &mut logits);
            logits
        };
        let own = logits(Adapter::after(2));
        assert_eq!(own[0], 1.0 + 0.75 / 4.0 + 0.75 / 2.0);
        // A step of 1.024 units in the row, and of 0.512, which is none, in that of all.
        assert_eq!(own[1], 1.0 - UNIT);
        let other = logits(Adapter::after(3));
        assert_eq!(other[0], 1.0 + 0.75 / 4.0);
        assert!(other[1..].iter().all(|&logit| logit == 1.0));
    }
}
