//! Tensors of every element type and of eight shapes, and ordinary messages among them, at either alignment: to the byte,
//! and where a vector unit wants them.

use ramway_agents::Result;

use super::pair::Pair;
use super::stream::empty;
use crate::run::{Program, Scene};

/// The element types in the order of ABI.md's table: the bytes of each.
const SIZES: [u64; 23] = [1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1];
/// The one whose elements are 0 or 1.
const BOOL: usize = 14;
/// The last shape is 31 dimensions of 1 and one of 2.
const SHAPES: [&[u64]; 8] = [&[], &[0], &[1], &[2, 3], &[5, 0, 7], &[3, 1, 5, 2], &[257], &ONES];
const ONES: [u64; 32] = {
    let mut shape = [1; 32];
    shape[31] = 2;
    shape
};
/// Each of the shapes with each of the types, and then as many again at other places of the ring.
const COUNT: u64 = 2 * 24 * 8;

/// Tensor number `seq`, as both agents spell it; `None` where that is an ordinary message.
fn made(seq: u64) -> Option<String> {
    let kind = (seq % 24) as usize;
    let size = SIZES.get(kind)?;
    let shape = SHAPES[(seq / 24 % 8) as usize];
    let values = if kind == BOOL { 2 } else { 256 };
    let bytes: Vec<u8> = (seq..seq + shape.iter().product::<u64>() * size).map(|byte| (byte % values) as u8).collect();
    let data: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tag = u64::from(crc32fast::hash(&bytes)) << 32 | seq;
    Some(format!("type={kind} shape={} tag={tag} data={data}", shape.join("x")))
}

fn send(producer: &mut Program, seq: u64, reserve: bool) -> Result<()> {
    let Some(made) = made(seq) else {
        return producer.ask(&format!("produce start={seq} count=1 sizes=32"), "sent").map(drop);
    };
    let how = if reserve { " reserve=yes" } else { "" };
    producer.ask(&format!("tensor {made}{how}"), "sent")?.expect("offset=0").map(drop)
}

fn receive(consumer: &mut Program, seq: u64) -> Result<()> {
    if let Some(made) = made(seq) {
        return consumer.ask("take tensor=yes", "tensor")?.expect(&format!("{made} offset=0")).map(drop);
    }
    let bytes: Vec<u8> = (seq..seq + 32).map(|byte| byte as u8).collect();
    let crc = crc32fast::hash(&bytes);
    let (kind, tag) = (seq % 60_000, u64::from(crc) << 32 | seq);
    let message = consumer.ask("take tensor=yes", "message")?;
    message.expect(&format!("type_id={kind} tag={tag} len=32 crc32={crc}")).map(drop)
}

/// The scenario.
pub fn tensors(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let reserve = pair.pick(&[true, false]);
    for align in [16, 64] {
        let mut plan = pair.plan();
        plan.align = align;
        let (mut producer, mut consumer) = pair.both(scene, &plan)?;
        for seq in 0..COUNT {
            let wrong = |cause| format!("number {seq}: {cause}");
            send(&mut producer, seq, reserve).map_err(wrong)?;
            receive(&mut consumer, seq).map_err(wrong)?;
        }
        producer.finish()?;
        consumer.ask("take tensor=yes", "end")?.expect("name=Closed number=9")?;
        consumer.finish()?;
        empty(scene)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_those_of_their_number() {
        assert_eq!(made(0).as_deref(), Some("type=0 shape= tag=15132921086787715072 data=00"));
        assert!(made(23).is_none() && made(24 * 8 + 14).is_some_and(|text| text.ends_with("data=00")));
        assert!(
            made(24 * 3 + 14).is_some_and(|text| text.contains("shape=2x3 ") && text.ends_with("data=000100010001"))
        );
    }
}
