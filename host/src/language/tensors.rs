//! The tensors of a model: names, shapes and places in the file, in the order of the computation.

use super::parameters::Parameters;

/// The purpose of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// One row per token.
    Embedding,
    /// The gains of a norm; programs accept only `f32`.
    Norm,
    /// One row per output of a layer.
    Matrix,
    /// One row per token, if the embedding is not the head.
    Head,
    /// Added to the outputs of a layer; `f32`.
    Bias,
    /// Divisors of the frequencies of RoPE; `f32`.
    Frequencies,
}

impl Role {
    /// True if the tensor has rows that a block type can hold.
    pub const fn is_matrix(self) -> bool {
        matches!(self, Self::Embedding | Self::Matrix | Self::Head)
    }
}

/// A tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub role: Role,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
}

impl Slot {
    /// True if its rows are values of queries or keys, which RoPE rotates.
    pub(crate) fn is_rotated(&self) -> bool {
        matches!(self.of_layer(), Some((_, "attn_q" | "attn_k")))
    }

    /// Returns the layer and the name within it, without its end; `None` for a tensor outside the layers.
    pub(crate) fn of_layer(&self) -> Option<(usize, &str)> {
        let mut parts = self.name.split('.');
        let (first, layer, part) = (parts.next()?, parts.next()?, parts.next()?);
        let layer = layer.parse().ok()?;
        (first == "blk").then_some((layer, part))
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Optional tensors of a `llama`; `bitnet` has none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// `output.weight`: a head that is not the embedding.
    pub head: bool,
    /// A bias for each matrix of the attention.
    pub attention_biases: bool,
    /// A bias for each matrix between the two halves of a feed-forward layer, and after them.
    pub feed_forward_biases: bool,
    /// `rope_freqs.weight`.
    pub frequencies: bool,
}

impl Parameters {
    /// Returns the tensors in the order of their use, which is that of the file.
    pub fn tensors(&self, extras: Extras) -> Vec<Slot> {
        let width = self.embedding_length as usize;
        let feed = self.feed_forward_length as usize;
        let tokens = self.vocab_size as usize;
        let (queries, keys) = (self.query_length() as usize, self.key_length() as usize);
        let mut slots = Vec::new();
        let mut push = |name: String, role: Role, shape: &[usize]| {
            let shape = shape.to_vec();
            slots.push(Slot { name, role, shape });
        };
        push(
            "token_embd.weight".into(),
            Role::Embedding,
            &[tokens, width],
        );
        if extras.frequencies {
            let pairs = self.head_length as usize / 2;
            push("rope_freqs.weight".into(), Role::Frequencies, &[pairs]);
        }
        let layer: [(&str, &[usize]); 11] = [
            ("attn_norm", &[width]),
            ("attn_q", &[queries, width]),
            ("attn_k", &[keys, width]),
            ("attn_v", &[keys, width]),
            ("attn_sub_norm", &[queries]),
            ("attn_output", &[width, queries]),
            ("ffn_norm", &[width]),
            ("ffn_gate", &[feed, width]),
            ("ffn_up", &[feed, width]),
            ("ffn_sub_norm", &[feed]),
            ("ffn_down", &[width, feed]),
        ];
        let sub_norms = self.architecture.is_bitnet();
        for index in 0..self.block_count {
            for (name, shape) in layer {
                if name.ends_with("sub_norm") && !sub_norms {
                    continue;
                }
                let role = match shape {
                    [_] => Role::Norm,
                    _ => Role::Matrix,
                };
                push(format!("blk.{index}.{name}.weight"), role, shape);
                let biases = match name.starts_with("attn_") {
                    true => extras.attention_biases,
                    false => extras.feed_forward_biases,
                };
                if let ([rows, _], true) = (shape, biases) {
                    push(format!("blk.{index}.{name}.bias"), Role::Bias, &[*rows]);
                }
            }
        }
        push("output_norm.weight".into(), Role::Norm, &[width]);
        if extras.head {
            push("output.weight".into(), Role::Head, &[tokens, width]);
        }
        slots
    }
}
