//! Tensors through rings, and whatever bytes as a tensor frame.

mod support;

use proptest::prelude::*;
use ramway::tensor::{self, Dtype, NDIM_MAX, Plan};
use ramway::{ErrorKind, Ring};
use std::time::Duration;
use support::Dir;

fn address(tensor: &tensor::Tensor<'_>) -> usize {
    tensor.data().as_ptr().addr()
}

#[test]
fn every_dtype_crosses_rings_of_every_alignment() {
    let dir = Dir::new();
    for align in [16, 32, 64, 128, 4096] {
        let path = dir.join(&format!("tensors-{align}"));
        let mut tx = Ring::create(&path).capacity(1 << 16).align(align).sender().unwrap();
        let mut rx = Ring::open(&path).receiver().unwrap();
        for round in 0..8 {
            for (i, &dtype) in Dtype::ALL.iter().enumerate() {
                // Moves on by other lengths, so that payloads begin everywhere, across the end too.
                tx.send(1, &vec![0xAA; 16 * round + i]).unwrap();
                rx.recv().unwrap().release();
                let shape = [i as u64 + 1, round as u64, 3];
                let nbytes = (i + 1) * round * 3 * dtype.size();
                let data: Vec<u8> = (0..nbytes).map(|byte| (byte * 7 + i) as u8).collect();
                if round % 2 == 0 {
                    tx.send_tensor_tagged(dtype, &shape, i as u64, &data).unwrap();
                } else {
                    let mut slot = tx.reserve_tensor(dtype, &shape).unwrap().with_tag(i as u64);
                    assert_eq!((slot.dtype(), slot.shape(), slot.len()), (dtype, &shape[..], nbytes));
                    assert_eq!(slot.as_ptr().addr() % 64, 0);
                    slot.copy_from_slice(&data);
                    slot.commit().unwrap();
                }
                let message = rx.recv().unwrap();
                assert_eq!((message.type_id(), message.tag()), (tensor::TYPE_ID, i as u64));
                let tensor = message.tensor().unwrap();
                assert_eq!((tensor.dtype(), tensor.shape(), tensor.data()), (dtype, &shape[..], &data[..]));
                assert_eq!(address(&tensor) % 64, 0);
            }
        }
    }
}

#[test]
fn typed_views_in_place() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    let mut slot = tx.reserve_tensor(Dtype::F64, &[2, 2]).unwrap();
    assert_eq!(slot.as_mut_slice::<f32>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    slot.as_mut_slice::<f64>().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    slot.commit().unwrap();
    let message = rx.recv().unwrap();
    let tensor = message.tensor().unwrap();
    assert_eq!(tensor.as_slice::<f64>().unwrap(), &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(tensor.as_slice::<i64>().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_batch_has_tensors_too_and_an_unflushed_one_comes_with_the_next() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    tx.reserve_tensor(Dtype::U8, &[1]).unwrap().commit_unflushed().unwrap();
    assert!(rx.is_empty());
    tx.send_tensor(Dtype::U8, &[2], &[1, 2]).unwrap();
    let mut batch = rx.recv_batch(8).unwrap();
    let shapes: Vec<_> = batch.iter().map(|message| message.tensor().unwrap().shape()[0]).collect();
    assert_eq!(shapes, [1, 2]);
}

#[test]
fn a_dropped_slot_leaves_nothing() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    drop(tx.reserve_tensor(Dtype::U8, &[100]).unwrap());
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
}

#[test]
fn what_cannot_be_sent() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    let wrong = tx.send_tensor(Dtype::F32, &[2, 3], &[0; 23]).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
    assert_eq!(wrong.to_string(), "23 bytes for float32 of the shape [2, 3]: that is 24");
    assert_eq!(tx.send_tensor(Dtype::U8, &[1; 33], &[0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(tx.reserve_tensor(Dtype::U8, &[1 << 63]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(tx.reserve_tensor(Dtype::U8, &[1 << 62]).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(tx.reserve_tensor(Dtype::U8, &[4096]).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);

    // As long as it can be: what decides is the room of the worst place.
    let longest = tx.max_message_len() - Plan::new(Dtype::U8, &[0]).unwrap().room();
    let data = vec![1; longest];
    for _ in 0..20 {
        tx.try_send_tensor(Dtype::U8, &[longest as u64], &data).unwrap();
        assert_eq!(tx.try_send_tensor(Dtype::U8, &[1], &[1]).unwrap_err().kind(), ErrorKind::Full);
        assert_eq!(tx.try_reserve_tensor(Dtype::U8, &[1]).unwrap_err().kind(), ErrorKind::Full);
        let short = Duration::from_millis(1);
        assert_eq!(tx.send_tensor_timeout(Dtype::U8, &[1], &[1], short).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(tx.reserve_tensor_timeout(Dtype::U8, &[1], short).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(rx.recv().unwrap().tensor().unwrap().data(), &data[..]);
        tx.send(0, &[0; 5]).unwrap();
        rx.recv().unwrap().release();
    }
    let too_long = tx.try_send_tensor(Dtype::U8, &[longest as u64 + 1], &vec![1; longest + 1]).unwrap_err();
    assert_eq!(too_long.kind(), ErrorKind::TooLarge);
}

#[test]
fn only_a_tensor_is_one() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    let mut frame = vec![0; 200];
    let plan = Plan::new(Dtype::U8, &[1]).unwrap();
    plan.write_header(&mut frame, 16);
    // The same bytes under an application's type id, and other bytes under the tensor's.
    tx.send(1, &frame[..17]).unwrap();
    let refused = rx.recv().unwrap().tensor().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().starts_with("not a tensor frame: its type id is 0x1"), "{refused}");
    assert_eq!(tx.send(tensor::TYPE_ID, &frame[..17]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut raw = tx.raw();
    raw.reserve(5, ramway::ring::raw::WaitLimit::None).unwrap();
    raw.commit(5, tensor::TYPE_ID, 0, true).unwrap();
    assert_eq!(rx.recv().unwrap().tensor().unwrap_err().kind(), ErrorKind::InvalidArgument);
    // And the ring goes on.
    tx.send_tensor(Dtype::U8, &[1], &[1]).unwrap();
    assert_eq!(rx.recv().unwrap().tensor().unwrap().data(), &[1]);
}

fn dtype() -> impl Strategy<Value = Dtype> {
    proptest::sample::select(Dtype::ALL)
}

/// Shapes of few elements, with dimensions of 0 and 1 among them.
fn shape() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        8 => prop::collection::vec(0u64..5, 0..5),
        2 => prop::collection::vec(0u64..2, 0..=NDIM_MAX),
        1 => prop::collection::vec(any::<u64>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_plan_writes_is_what_is_read(dtype in dtype(), shape in shape(), address in any::<usize>(), seed in any::<u8>()) {
        let Ok(plan) = Plan::new(dtype, &shape) else { return Ok(()) };
        prop_assume!(plan.nbytes() < 1 << 20);
        let mut payload = vec![seed; plan.room()];
        let offset = plan.place(address);
        plan.write_header(&mut payload, offset);
        payload.truncate(offset + plan.nbytes());
        let tensor = tensor::parse(&payload).unwrap();
        prop_assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &shape[..]));
        prop_assert_eq!(tensor.data(), &payload[offset..]);
        prop_assert_eq!(shape.iter().product::<u64>() as usize * dtype.size(), tensor.data().len());
    }

    #[test]
    fn anything_is_a_frame_or_an_error(payload in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = tensor::parse(&payload);
    }

    /// Frames with a few bytes changed: what is accepted agrees with itself.
    #[test]
    fn a_changed_frame_agrees_with_itself_or_is_refused(
        dtype in dtype(),
        shape in shape(),
        changes in prop::collection::vec((0usize..100, any::<u8>()), 0..4),
        cut in 0usize..4,
    ) {
        let Ok(plan) = Plan::new(dtype, &shape) else { return Ok(()) };
        prop_assume!(plan.nbytes() < 1 << 20);
        let mut payload = vec![0; plan.room()];
        let offset = plan.place(16);
        plan.write_header(&mut payload, offset);
        payload.truncate((offset + plan.nbytes()).saturating_sub(cut));
        for (at, value) in changes {
            if let Some(byte) = payload.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(tensor) = tensor::parse(&payload) {
            let again = Plan::new(tensor.dtype(), tensor.shape()).unwrap();
            prop_assert_eq!(again.nbytes(), tensor.data().len());
            let offset = payload.len() - again.nbytes();
            let mut header = vec![0xEE; offset];
            again.write_header(&mut header, offset);
            prop_assert_eq!(&header[..], &payload[..offset]);
        }
    }
}
