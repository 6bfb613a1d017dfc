//! The ternary rules and scale rules, and the largest number of values of a block.

/// Rule that chooses which values become ±1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rule {
    /// scale = max|x|, ±1 from half of it (`fl(x · fl(1/max))` rounded half away from zero): the rule of ggml's
    /// reference.
    #[default]
    AbsMax,
    /// scale = mean|x|, ±1 above half of it (`fl(x · fl(1/mean))` rounded half to even): BitNet b1.58 (arXiv
    /// 2402.17764), and `transformers`' rule if the mean is at least 1e-5.
    AbsMean,
    /// ±1 above `fl(0.7 · mean|x|)`, scale = mean of the coded magnitudes: Ternary Weight Networks
    /// (arXiv 1605.04711). Its own scale is the least-squares one.
    Twn,
    /// The least squared error of any ternary code; see [`super::optimal`]. Its own scale is the least-squares one.
    Optimal,
}

/// Source of the scale, once the codes are fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ScaleRule {
    /// The rule's own scale.
    #[default]
    Rule,
    /// The least-squares scale: the mean of the coded |x|.
    LeastSquares,
}

/// Largest number of values of a block, which [`decide`](super::ternary::decide) takes and which is sorted for
/// [`Rule::Optimal`].
pub const BLOCK_LEN: usize = 256;
