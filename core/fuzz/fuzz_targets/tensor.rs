//! Whatever bytes as a tensor frame: an error, or a tensor that agrees with itself. The input is read twice, as it is
//! and as changes of a well-formed frame, which random bytes seldom are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ramway::ErrorKind;
use ramway::tensor::{ALIGN, Dtype, Plan, parse};

fn look(payload: &[u8]) {
    let tensor = match parse(payload) {
        Ok(tensor) => tensor,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            return;
        }
    };
    let plan = Plan::new(tensor.dtype(), tensor.shape()).unwrap();
    assert_eq!(plan.nbytes(), tensor.data().len());
    assert!(payload.len() <= plan.room());
    let offset = payload.len() - plan.nbytes();
    // The frame is the one that a plan writes at such a place.
    let mut header = vec![0xEE; offset];
    plan.write_header(&mut header, offset);
    assert_eq!(header, payload[..offset]);
    if tensor.dtype() == Dtype::F64 && tensor.data().as_ptr().addr() % 8 == 0 {
        assert_eq!(tensor.as_slice::<f64>().unwrap().len() * 8, plan.nbytes());
    }
}

fuzz_target!(|data: &[u8]| {
    look(data);
    let [dtype, place, ndim, rest @ ..] = data else { return };
    let ndim = usize::from(*ndim % 6).min(rest.len());
    let (dims, changes) = rest.split_at(ndim);
    let shape: Vec<u64> = dims.iter().map(|dim| u64::from(*dim % 5)).collect();
    let plan = Plan::new(Dtype::ALL[usize::from(*dtype) % Dtype::ALL.len()], &shape).unwrap();
    let offset = plan.place(usize::from(*place));
    assert_eq!((usize::from(*place) + offset) % ALIGN, 0);
    let mut payload = vec![0; plan.room()];
    plan.write_header(&mut payload, offset);
    payload.truncate(offset + plan.nbytes());
    assert_eq!(parse(&payload).unwrap().shape(), shape);
    for change in changes.chunks_exact(2) {
        let at = usize::from(change[0]) % payload.len();
        payload[at] ^= change[1];
    }
    look(&payload);
});
