//! Tensors number 0, 1, 2, …: every element type in turn, and each of them in every shape.

use ramway::tensor::Dtype;
use ramway::{Message, Sender};

const ONES: [u64; 32] = {
    let mut shape = [1; 32];
    shape[31] = 2;
    shape
};
const SHAPES: [&[u64]; 8] = [&[], &[0], &[1], &[2, 3], &[5, 0, 7], &[3, 1, 5, 2], &[257], &ONES];

/// Tensor number `seq`: byte `i` of its elements is `seq + i`, modulo 2 for bool. Its tag is `seq`.
fn made(seq: u64) -> (Dtype, &'static [u64], Vec<u8>) {
    let types = Dtype::ALL.len() as u64;
    let (dtype, shape) = (Dtype::ALL[(seq % types) as usize], SHAPES[(seq / types % 8) as usize]);
    let nbytes = shape.iter().product::<u64>() * dtype.size() as u64;
    let values = if dtype == Dtype::BOOL { 2 } else { 256 };
    (dtype, shape, (seq..seq + nbytes).map(|byte| (byte % values) as u8).collect())
}

pub(crate) fn send(sender: &mut Sender, seq: u64) -> ramway::Result<()> {
    let (dtype, shape, elements) = made(seq);
    sender.send_tensor_tagged(dtype, shape, seq, &elements)
}

/// What is wrong with what came as tensor number `seq`.
pub(crate) fn damage(seq: u64, message: &Message<'_>) -> Option<String> {
    let (dtype, shape, elements) = made(seq);
    let tensor = match message.tensor() {
        Ok(tensor) => tensor,
        Err(refused) => return Some(refused.to_string()),
    };
    let off = tensor.data().as_ptr().addr() % 64;
    if (tensor.dtype(), tensor.shape(), message.tag()) != (dtype, shape, seq) {
        Some(format!("{tensor:?} with the tag {} instead of {dtype} {shape:?}", message.tag()))
    } else if tensor.data() != elements {
        Some(format!("the elements of {tensor:?} are others"))
    } else if off != 0 {
        Some(format!("the elements begin {off} bytes after a multiple of 64"))
    } else {
        None
    }
}
