//! `tensors`.

use ramway::tensor::Dtype;
use ramway::{ErrorKind, Message, Receiver, Sender};

use crate::Stop;
use crate::args::{Args, How, Role, Sizes};
use crate::message::{Messages, tag};
use crate::place::open;

const ONES: [u64; 32] = {
    let mut shape = [1; 32];
    shape[31] = 2;
    shape
};
const SHAPES: [&[u64]; 8] = [&[], &[0], &[1], &[2, 3], &[5, 0, 7], &[3, 1, 5, 2], &[257], &ONES];

/// Tensor number `seq`; `None` where that is an ordinary message.
fn made(seq: u64) -> Option<(Dtype, &'static [u64], Vec<u8>)> {
    let &dtype = Dtype::ALL.get((seq % 24) as usize)?;
    let shape = SHAPES[(seq / 24 % 8) as usize];
    let values = if dtype == Dtype::BOOL { 2 } else { 256 };
    let nbytes = shape.iter().product::<u64>() * dtype.size() as u64;
    Some((dtype, shape, (seq..seq + nbytes).map(|byte| (byte % values) as u8).collect()))
}

fn aligned(seq: u64, elements: &[u8]) -> Result<(), Stop> {
    match elements.as_ptr().addr() % 64 {
        0 => Ok(()),
        off => Err(Stop::Bad(seq, format!("the elements begin {off} bytes after a multiple of 64"))),
    }
}

fn send(tx: &mut Sender, args: &Args, messages: &Messages, seq: u64) -> Result<(), Stop> {
    let Some((dtype, shape, elements)) = made(seq) else {
        let message = messages.make(seq);
        return Ok(tx.send_tagged(message.type_id, message.tag, message.payload)?);
    };
    let tag = tag(seq, &elements);
    if args.how != Some(How::Reserve) {
        return Ok(tx.send_tensor_tagged(dtype, shape, tag, &elements)?);
    }
    let slot = match args.limit() {
        Some(limit) => tx.reserve_tensor_timeout(dtype, shape, limit),
        None => tx.reserve_tensor(dtype, shape),
    };
    let mut slot = slot?.with_tag(tag);
    aligned(seq, &slot)?;
    slot.copy_from_slice(&elements);
    Ok(slot.commit()?)
}

fn check(seq: u64, messages: &Messages, message: &Message<'_>) -> Result<(), Stop> {
    let bad = |what: String| Stop::Bad(seq, what);
    let tensor = message.tensor();
    let Some((dtype, shape, elements)) = made(seq) else {
        return match tensor.map_err(|refused| refused.kind()) {
            Err(ErrorKind::InvalidArgument) => {
                messages.check(seq, message.type_id(), message.tag(), message).map_err(bad)
            }
            other => Err(bad(format!("an ordinary message as a tensor is {other:?}"))),
        };
    };
    let tensor = tensor?;
    if (tensor.dtype(), tensor.shape()) != (dtype, shape) {
        return Err(bad(format!("{tensor:?} instead of {dtype} {shape:?}")));
    }
    // The tag of the bytes that came, so that each of them is read.
    if tensor.data() != elements || tag(seq, tensor.data()) != message.tag() {
        return Err(bad(format!("other bytes, or the tag {:#x}", message.tag())));
    }
    aligned(seq, tensor.data())
}

pub(crate) fn tensors(args: &Args) -> Result<(), Stop> {
    let messages = Messages::new(Sizes::Fixed(32), 32);
    match args.role.ok_or(Stop::Usage("--role is missing"))? {
        Role::Producer => {
            let count = args.count.ok_or(Stop::Usage("--count is missing"))?;
            let mut ends = open(args, args.ring.as_deref(), None)?;
            let tx = ends.sending()?;
            for seq in 0..count {
                send(tx, args, &messages, seq)?;
            }
            println!("sent count={count} next={count}");
            ends.close();
        }
        Role::Consumer => {
            let mut ends = open(args, None, args.ring.as_deref())?;
            let rx = ends.receiving()?;
            let mut received = 0;
            let end = loop {
                match receive(rx, args) {
                    Ok(message) => check(received, &messages, &message)?,
                    Err(end) => break end.kind(),
                }
                received += 1;
            };
            println!("end name={} number={} received={received}", end.name(), end.code());
            ends.close();
        }
    }
    Ok(())
}

fn receive<'a>(rx: &'a mut Receiver, args: &Args) -> ramway::Result<Message<'a>> {
    match args.limit() {
        Some(limit) => rx.recv_timeout(limit),
        None => rx.recv(),
    }
}
