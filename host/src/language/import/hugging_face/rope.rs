//! RoPE's base and scaling: `rope_theta` and `rope_scaling`, or `rope_parameters`, which has both.

use tercet_core::number::rope_step;

use super::json::Object;
use crate::Error;

/// How positions become angles.
#[derive(Debug)]
pub(super) struct Rope {
    pub(super) base: f32,
    /// Divisor of positions.
    pub(super) factor: Option<f32>,
    /// Divisor of each pair's frequency; empty if there are none.
    pub(super) factors: Vec<f32>,
}

pub(super) fn read(
    file: &Object,
    base: f64,
    head_length: u32,
    context: u32,
) -> Result<Rope, Error> {
    let parameters = file.object("rope_parameters")?;
    let scaling = match file.object("rope_scaling")? {
        Some(scaling) => Some(scaling),
        None => parameters,
    };
    let within = match &scaling {
        Some(scaling) => scaling.number("rope_theta")?,
        None => None,
    };
    let base = file.number("rope_theta")?.or(within).unwrap_or(base) as f32;
    let mut rope = Rope {
        base,
        factor: None,
        factors: Vec::new(),
    };
    let Some(scaling) = scaling else {
        return Ok(rope);
    };
    let positive = |key: &str| {
        let found = scaling.number(key)?;
        found
            .filter(|x| *x > 0.0)
            .ok_or_else(|| scaling.bad(format!("{} must be a number above 0", scaling.name(key))))
    };
    if let Some((key, _)) = scaling.fields().find(|(_, value)| value.is_object()) {
        let key = scaling.name(key);
        return Err(
            scaling.unsupported(format!("{key}: only one RoPE for all layers is supported"))
        );
    }
    // Older files use `type`.
    let kind = match scaling.text("rope_type")? {
        Some(kind) => kind,
        None => scaling.text("type")?.unwrap_or("default"),
    };
    scaling.only("partial_rotary_factor", &[1.into(), 1.0.into()])?;
    match kind {
        "default" => {}
        "linear" => rope.factor = Some(positive("factor")? as f32).filter(|factor| *factor != 1.0),
        "llama3" => {
            let llama3 = Llama3 {
                factor: positive("factor")?,
                low: positive("low_freq_factor")?,
                high: positive("high_freq_factor")?,
                context: scaling
                    .number("original_max_position_embeddings")?
                    .unwrap_or(f64::from(context)),
            };
            rope.factors = llama3.factors(base, head_length).ok_or_else(|| {
                let reason =
                    "its rope_theta is below 1, or low_freq_factor not below high_freq_factor";
                scaling.bad(reason)
            })?;
        }
        other => {
            let key = scaling.name("rope_type");
            return Err(scaling.unsupported(format!(
                "{key} = \"{other}\" is not supported; default, linear and llama3 are"
            )));
        }
    }
    Ok(rope)
}

/// The scaling of Llama 3. Frequencies with few turns within the original training context are divided by `factor`,
/// those with many turns are kept, and those between are interpolated linearly.
struct Llama3 {
    factor: f64,
    low: f64,
    high: f64,
    context: f64,
}

impl Llama3 {
    /// Returns the divisor of each pair's frequency. Source: `_compute_llama3_parameters` of transformers,
    /// `generate_extra_tensors` of llama.cpp's converter. Turns within the context are counted from the fraction of a
    /// turn per position in core's RoPE, so that every machine has the same factors.
    fn factors(&self, base: f32, head_length: u32) -> Option<Vec<f32>> {
        if self.low >= self.high {
            return None;
        }
        let factor = |pair: u32| {
            let step = rope_step(base, pair, head_length)?;
            let turns = self.context * step as f64 / 2f64.powi(64);
            Some(if turns > self.high {
                1.0
            } else if turns < self.low {
                self.factor as f32
            } else {
                let smooth = (turns - self.low) / (self.high - self.low);
                (1.0 / ((1.0 - smooth) / self.factor + smooth)) as f32
            })
        };
        (0..head_length / 2).map(factor).collect()
    }
}
