//! `tensor`, and a tensor that is taken.

use std::fmt::Write;

use ramway::ring::log::Log;
use ramway::tensor::{Dtype, Tensor};
use ramway::{Message, Sender};

use crate::line::Line;
use crate::{Stop, named};

pub(crate) fn send<L: Log>(tx: &mut Sender<L>, mut line: Line) -> Result<(), Stop> {
    let (at, tag, in_place): (usize, u64, bool) = (line.need("type")?, line.need("tag")?, line.yes("reserve"));
    let [shape, data] = ["shape", "data"].map(|key| line.text(key).unwrap_or_default());
    line.end()?;
    let wrong = |_| Stop::Refused("a shape or bytes that are no numbers".to_owned());
    let shape: Vec<u64> =
        shape.split('x').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<_, _>>().map_err(wrong)?;
    let bytes = |at: usize| u8::from_str_radix(&data[at..at + 2], 16);
    let elements: Vec<u8> = (0..data.len()).step_by(2).map(bytes).collect::<Result<_, _>>().map_err(wrong)?;
    let dtype = Dtype::ALL[at];
    let mut offset = 0;
    let sent = if in_place {
        tx.reserve_tensor(dtype, &shape).and_then(|slot| {
            let mut slot = slot.with_tag(tag);
            offset = slot.as_ptr().addr() % 64;
            slot.copy_from_slice(&elements);
            slot.commit()
        })
    } else {
        tx.send_tensor_tagged(dtype, &shape, tag, &elements)
    };
    match sent {
        Ok(()) => println!("sent offset={offset}"),
        Err(cause) => println!("end {}", named(cause.kind())),
    }
    Ok(())
}

pub(crate) fn say<L: Log>(message: &Message<'_, L>, tensor: &Tensor<'_>) {
    let at = Dtype::ALL.iter().position(|&dtype| dtype == tensor.dtype()).unwrap_or(usize::MAX);
    let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    let (elements, tag, shape) = (tensor.data(), message.tag(), shape.join("x"));
    let mut data = String::with_capacity(2 * elements.len());
    elements.iter().for_each(|byte| _ = write!(data, "{byte:02x}"));
    let offset = elements.as_ptr().addr() % 64;
    println!("tensor type={at} shape={shape} tag={tag} offset={offset} data={data}");
}
