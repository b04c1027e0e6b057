use super::*;

/// A frame of this type and shape whose payload begins `address` bytes after a multiple of 64.
fn frame(dtype: Dtype, shape: &[u64], address: usize) -> Vec<u8> {
    let plan = Plan::new(dtype, shape).unwrap();
    let mut payload = vec![0xEE; plan.room()];
    let offset = plan.place(address);
    plan.write_header(&mut payload, offset);
    for (i, byte) in payload[offset..offset + plan.nbytes()].iter_mut().enumerate() {
        *byte = i as u8;
    }
    payload.truncate(offset + plan.nbytes());
    payload
}

fn refused(payload: &[u8]) -> String {
    let error = parse(payload).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(text.starts_with("not a tensor frame: "), "{text}");
    text
}

#[test]
fn every_dtype_goes_there_and_back() {
    for &dtype in Dtype::ALL {
        assert_eq!(Dtype::new(dtype.code(), dtype.bits()), Some(dtype));
        assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        let payload = frame(dtype, &[3, 5], 16);
        let tensor = parse(&payload).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[3, 5][..]));
        assert_eq!(tensor.data().len(), 15 * dtype.size());
        assert!(tensor.data().iter().enumerate().all(|(i, &byte)| byte == i as u8));
    }
    assert_eq!(Dtype::ALL.len(), 23);
}

#[test]
fn no_other_pair_of_code_and_bits_is_a_dtype() {
    let known = (0..=255).flat_map(|code| (0..=255).filter_map(move |bits| Dtype::new(code, bits))).count();
    assert_eq!(known, Dtype::ALL.len());
    // DLPack has these, and no language writes them as it reads them.
    for (code, bits) in [(2, 128), (0, 4), (0, 128), (6, 1), (4, 32), (3, 64), (15, 8), (17, 4)] {
        assert_eq!(Dtype::new(code, bits), None);
        let mut payload = frame(Dtype::U8, &[1], 0);
        payload[..2].copy_from_slice(&[code, bits]);
        assert!(refused(&payload).contains("element type"));
    }
}

#[test]
fn the_elements_begin_on_a_multiple_of_64_wherever_the_payload_does() {
    for ndim in 0..=NDIM_MAX {
        let plan = Plan::new(Dtype::F64, &vec![1; ndim]).unwrap();
        for address in (0..=256).chain([usize::MAX, usize::MAX - 300]) {
            let offset = plan.place(address);
            assert_eq!(address.wrapping_add(offset) % ALIGN, 0);
            assert!(offset >= 8 + 8 * ndim && offset < 8 + 8 * ndim + ALIGN);
            assert!(offset + plan.nbytes() <= plan.room());
        }
    }
}

#[test]
fn no_dimension_is_one_element_and_one_of_0_is_none() {
    let payload = frame(Dtype::F64, &[], 48);
    assert_eq!(payload.len(), 16 + 8);
    let tensor = parse(&payload).unwrap();
    assert_eq!((tensor.shape(), tensor.data().len()), (&[][..], 8));
    for shape in [&[0][..], &[4, 0, 3], &[0, 0]] {
        let payload = frame(Dtype::I32, shape, 0);
        let tensor = parse(&payload).unwrap();
        assert_eq!((tensor.shape(), tensor.data().len()), (shape, 0));
        assert_eq!(tensor.as_slice::<i32>().unwrap(), &[]);
    }
}

#[test]
fn dimensions_up_to_32() {
    let mut shape = [1; 33];
    shape[0] = 2;
    shape[31] = 3;
    assert_eq!(parse(&frame(Dtype::U16, &shape[..32], 0)).unwrap().shape(), &shape[..32]);
    let error = Plan::new(Dtype::U16, &shape).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("33 dimensions")), (ErrorKind::InvalidArgument, true));
    let mut payload = frame(Dtype::U16, &shape[..32], 0);
    payload[2] = 33;
    assert!(refused(&payload).contains("33 dimensions"));
}

#[test]
fn shapes_of_2_to_the_63_bytes_are_refused() {
    for (dtype, shape) in [
        (Dtype::U8, &[1 << 63][..]),
        (Dtype::U8, &[u64::MAX, u64::MAX]),
        (Dtype::U8, &[1 << 32, 1 << 32]),
        (Dtype::C128, &[1 << 59]),
        // A stride would overflow, although there is no element.
        (Dtype::U8, &[0, 1 << 32, 1 << 32]),
        (Dtype::U8, &[1 << 32, 1 << 32, 0]),
    ] {
        assert_eq!(Plan::new(dtype, shape).unwrap_err().kind(), ErrorKind::InvalidArgument, "{shape:?}");
        let mut payload = frame(dtype, &vec![0; shape.len()], 0);
        for (i, dim) in shape.iter().enumerate() {
            payload[8 + 8 * i..][..8].copy_from_slice(&dim.to_le_bytes());
        }
        assert!(refused(&payload).contains("of the shape"));
    }
    assert_eq!(Plan::new(Dtype::U8, &[(1 << 63) - 1]).unwrap().nbytes(), (1 << 63) - 1);
    assert!(Plan::new(Dtype::U8, &[(1 << 63) - 1]).unwrap().room() > 1 << 63);
    assert_eq!(Plan::new(Dtype::C128, &[1 << 58, 0]).unwrap().nbytes(), 0);
}

#[test]
fn every_byte_of_the_header_counts() {
    let good = frame(Dtype::I32, &[2, 3], 16);
    assert_eq!(good.len(), 48 + 24);
    for i in 0..48 {
        for bit in 0..8 {
            let mut payload = good.clone();
            payload[i] ^= 1 << bit;
            match parse(&payload) {
                // The other types of four bytes.
                Ok(tensor) => assert!(i == 0 && [Dtype::U32, Dtype::F32].contains(&tensor.dtype()), "byte {i}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
            }
        }
    }
}

#[test]
fn malformed_frames() {
    let good = frame(Dtype::I32, &[2, 3], 16);
    for len in 0..good.len() {
        refused(&good[..len]);
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(refused(&longer).contains("25 bytes are not int32 of the shape [2, 3]"));
    // Below the shape's end, 64 or more behind it, beyond the payload, and as far as it goes.
    for offset in [0, 8, 23, 24 + 64, 73, 1 << 16, u32::MAX] {
        let mut payload = good.clone();
        payload[4..8].copy_from_slice(&offset.to_le_bytes());
        assert!(refused(&payload).contains(&format!("not at {offset}")), "{offset}");
    }
    for (byte, text) in [(3, "byte 3"), (24, "not all 0"), (47, "not all 0")] {
        let mut payload = good.clone();
        payload[byte] = 1;
        assert!(refused(&payload).contains(text));
    }
}

#[test]
fn elements_as_another_type_or_at_a_wrong_address() {
    let payload = frame(Dtype::I32, &[2], 0);
    let mut aligned = [0u64; 16];
    let copy = bytemuck::bytes_of_mut(&mut aligned);
    copy[..payload.len()].copy_from_slice(&payload);
    assert_eq!(parse(&copy[..payload.len()]).unwrap().as_slice::<i32>().unwrap(), &[0x0302_0100, 0x0706_0504]);
    let error = parse(&copy[..payload.len()]).unwrap().as_slice::<f32>().unwrap_err();
    assert!(error.to_string().contains("int32 read or written as f32"), "{error}");
    copy[1..][..payload.len()].copy_from_slice(&payload);
    let error = parse(&copy[1..][..payload.len()]).unwrap().as_slice::<i32>().unwrap_err();
    assert!(error.to_string().contains("aligned to 4"), "{error}");
}

#[test]
#[should_panic(expected = "elements at 80")]
fn a_header_is_written_for_a_place_that_place_gives() {
    Plan::new(Dtype::U8, &[1]).unwrap().write_header(&mut [0; 200], 80);
}
