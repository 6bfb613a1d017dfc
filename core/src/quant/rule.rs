//! The ternary rules and scales by name, and how many values a block has at most.

/// Which values become ±1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rule {
    /// scale = max|x|, ±1 from half of it (half away from zero of `fl(x · fl(1/max))`): ggml's reference.
    #[default]
    AbsMax,
    /// scale = mean|x|, ±1 above half of it (half to even of `fl(x · fl(1/mean))`): BitNet b1.58
    /// (arXiv 2402.17764), and `transformers`' rule wherever the mean is at least 1e-5.
    AbsMean,
    /// ±1 above `fl(0.7 · mean|x|)`, scale = mean of the coded magnitudes: Ternary Weight Networks
    /// (arXiv 1605.04711). Its own scale is the least-squares one.
    Twn,
    /// The least squared error any ternary code can have; see [`super::optimal`]. Its own scale is the
    /// least-squares one.
    Optimal,
}

/// Where the scale comes from once the codes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ScaleRule {
    /// The rule's own scale.
    #[default]
    Rule,
    /// The least-squares scale: the mean of the |x| that got a code.
    LeastSquares,
}

/// The most values of a block: those that [`decide`](super::ternary::decide) takes, and that are sorted for [`Rule::Optimal`].
pub const BLOCK_LEN: usize = 256;
