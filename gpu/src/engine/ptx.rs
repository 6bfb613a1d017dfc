//! Reads the parameters of a kernel from its text.

/// The type of a parameter, as far as PTX shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A 32-bit integer.
    Word,
    /// A 64-bit integer or a pointer.
    Long,
    /// An `f32`.
    Float,
    /// An `f64`.
    Double,
}

/// Returns the parameters of the kernel `name` in a module's text; `None` if it has no such kernel, or one with
/// parameters that kernels here do not have.
pub(super) fn parameters(ptx: &str, name: &str) -> Option<Vec<Parameter>> {
    let declared = ptx.split(".entry").skip(1).find_map(|entry| {
        let rest = entry.trim_start().strip_prefix(name)?;
        rest.trim_start().strip_prefix('(')
    })?;
    let (list, _) = declared.split_once(')')?;
    let list = list.trim();
    if list.is_empty() {
        return Some(Vec::new());
    }
    let types = list.split(',').map(|parameter| {
        let kind = parameter
            .trim()
            .strip_prefix(".param")?
            .split_whitespace()
            .next()?;
        Some(match kind {
            ".u32" | ".s32" | ".b32" => Parameter::Word,
            ".u64" | ".s64" | ".b64" => Parameter::Long,
            ".f32" => Parameter::Float,
            ".f64" => Parameter::Double,
            _ => return None,
        })
    });
    types.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.version 8.4
.visible .entry count_f32(
	.param .u64 count_f32_param_0,
	.param .f32 count_f32_param_1,
	.param .u32 count_f32_param_2
)
{ ret; }
.visible .entry count(
	.param .f64 count_param_0
)
.maxntid 256, 1, 1
{ ret; }
.visible .entry nothing()
{ ret; }
.visible .entry odd(.param .align 8 .b8 odd_param_0[16])
{ ret; }
";

    #[test]
    fn parameters_are_those_of_the_kernel_of_that_name() {
        use Parameter::{Double, Float, Long, Word};
        assert_eq!(parameters(TEXT, "count_f32"), Some(vec![Long, Float, Word]));
        assert_eq!(parameters(TEXT, "count"), Some(vec![Double]));
        assert_eq!(parameters(TEXT, "nothing"), Some(vec![]));
        assert_eq!(parameters(TEXT, "odd"), None);
        assert_eq!(parameters(TEXT, "coun"), None);
        assert_eq!(parameters("", "count"), None);
    }
}
