//! GPT-2's tensors, by name and shape, with contents that are the same in every run.

use crate::random::mix;
use safetensors::tensor::{Dtype, View};
use std::borrow::Cow;

/// The measures of a GPT-2. Its tensors' names and shapes follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Words of the vocabulary.
    pub vocabulary: usize,
    /// Positions.
    pub context: usize,
    /// Elements of a word's vector.
    pub width: usize,
    /// Layers.
    pub layers: usize,
}

impl Model {
    /// The one with 124 million parameters.
    pub const GPT2: Self = Self { vocabulary: 50257, context: 1024, width: 768, layers: 12 };

    /// The same with each measure divided by `scale`, at least 1 each: for trying out.
    pub fn smaller(self, scale: usize) -> Self {
        let part = |measure: usize| (measure / scale).max(1);
        Self {
            vocabulary: part(self.vocabulary),
            context: part(self.context),
            width: part(self.width),
            layers: part(self.layers),
        }
    }

    /// Names and shapes, as the published file has them: the causal mask of each layer (`attn.bias`), which is no
    /// parameter, is in it too.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let Self { vocabulary, context, width, layers } = *self;
        let mut all = vec![("wte.weight".into(), vec![vocabulary, width]), ("wpe.weight".into(), vec![context, width])];
        for layer in 0..layers {
            let parts: [(&str, Vec<usize>); 13] = [
                ("attn.bias", vec![1, 1, context, context]),
                ("attn.c_attn.bias", vec![3 * width]),
                ("attn.c_attn.weight", vec![width, 3 * width]),
                ("attn.c_proj.bias", vec![width]),
                ("attn.c_proj.weight", vec![width, width]),
                ("ln_1.bias", vec![width]),
                ("ln_1.weight", vec![width]),
                ("ln_2.bias", vec![width]),
                ("ln_2.weight", vec![width]),
                ("mlp.c_fc.bias", vec![4 * width]),
                ("mlp.c_fc.weight", vec![width, 4 * width]),
                ("mlp.c_proj.bias", vec![width]),
                ("mlp.c_proj.weight", vec![4 * width, width]),
            ];
            all.extend(parts.map(|(name, shape)| (format!("h.{layer}.{name}"), shape)));
        }
        all.extend(["ln_f.bias", "ln_f.weight"].map(|name| (name.to_owned(), vec![width])));
        all
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>() as u64 * 4).sum()
    }
}

/// What a tensor of a made file holds: numbers of either sign around a hundredth, others in each tensor.
pub fn contents(name: &str, len: usize) -> Vec<u8> {
    let seed = name.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
    let pair = |n: u64| {
        let word = mix(seed.wrapping_add(n));
        // Sign and fraction of both numbers; their exponents are 2^-7's.
        ((word & 0x807F_FFFF_807F_FFFF) | 0x3C00_0000_3C00_0000).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8) as u64).flat_map(pair).collect();
    bytes.truncate(len);
    bytes
}

/// A tensor to be written, whose bytes are made when they are asked for.
pub struct Made {
    /// Its name.
    pub name: String,
    /// Its shape; elements have four bytes.
    pub shape: Vec<usize>,
}

impl View for Made {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        contents(&self.name, self.data_len()).into()
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_model_that_was_published() {
        let tensors = Model::GPT2.tensors();
        let parameters: usize = tensors
            .iter()
            .filter(|(name, _)| !name.ends_with(".attn.bias"))
            .map(|(_, shape)| shape.iter().product::<usize>())
            .sum();
        assert_eq!((tensors.len(), parameters), (160, 124_439_808));
        // The published file has 548,105,171 bytes, of which 14,291 are its header.
        assert_eq!(Model::GPT2.bytes(), 548_105_171 - 14_291);
    }
}
