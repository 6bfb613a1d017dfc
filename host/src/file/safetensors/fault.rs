//! Finds the tensor that makes a header invalid: the format's own library reports the rule, but seldom the tensor.

use safetensors::Dtype;
use serde_json::{Value, from_value};

use crate::order::order;

/// Returns the first faulty tensor, and its fault; `None` if no single tensor is at fault.
///
/// Offsets count from the start of the data, as in the header.
pub(super) fn find(header: &[u8]) -> Option<(String, String)> {
    let Value::Object(entries) = serde_json::from_slice(header).ok()? else {
        return None;
    };
    let mut spans = Vec::with_capacity(entries.len());
    for (name, entry) in entries
        .into_iter()
        .filter(|(name, _)| name != "__metadata__")
    {
        match span(&entry) {
            Ok(span) => spans.push((span, name)),
            Err(reason) => return Some((name, reason)),
        }
    }
    let order = order(spans.len(), &|a, b| spans[a].cmp(&spans[b]));
    let mut expected = 0;
    for index in order {
        let ((start, end), name) = std::mem::take(&mut spans[index]);
        if start != expected {
            let reason =
                format!("its data begins at {start}, the data before it ends at {expected}");
            return Some((name, reason));
        }
        expected = end;
    }
    None
}

/// Returns the start and end of a tensor's data, if its type and shape take so many bytes.
fn span(entry: &Value) -> Result<(usize, usize), String> {
    let field = |name| entry.get(name).cloned().unwrap_or_default();
    let dtype = field("dtype");
    let dtype: Dtype = from_value(dtype.clone()).map_err(|_| format!("unknown dtype {dtype}"))?;
    let list = |name| {
        let list = field(name);
        from_value::<Vec<usize>>(list.clone())
            .map_err(|_| format!("its {name} is {list}, not a list of sizes"))
    };
    let shape = list("shape")?;
    let &[start, end] = list("data_offsets")?.as_slice() else {
        return Err("its data_offsets are not two".to_owned());
    };
    let stored = end
        .checked_sub(start)
        .ok_or_else(|| format!("its data begins at {start} and ends at {end}"))?;
    let bits = shape
        .iter()
        .try_fold(dtype.bitsize(), |bits, &dim| bits.checked_mul(dim))
        .ok_or_else(|| format!("the size of its shape {shape:?} overflows"))?;
    if stored.checked_mul(8) == Some(bits) {
        Ok((start, end))
    } else {
        let needed = bits.div_ceil(8);
        Err(format!(
            "{dtype} of shape {shape:?} takes {needed} bytes, its data_offsets hold {stored}"
        ))
    }
}
