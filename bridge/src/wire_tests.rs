use super::*;
use proptest::prelude::*;

fn end() -> impl Strategy<Value = Option<End>> {
    prop_oneof![
        Just(None),
        (any::<u32>(), any::<bool>())
            .prop_map(|(epoch, dead)| { Some(End { how: if dead { Ending::Dead } else { Ending::Closed }, epoch }) }),
    ]
}

fn pos() -> impl Strategy<Value = Pos> {
    (any::<u64>(), any::<u32>()).prop_map(|(frame, offset)| Pos { frame, offset })
}

prop_compose! {
    fn hello()(
        (near, stream, attempt, released) in any::<(u64, u64, u64, u64)>(),
        cursor in pos(),
        (align, capacity, far, time) in any::<(u32, u64, u64, u64)>(),
        end in end(),
    ) -> Hello {
        Hello { near, stream, attempt, released, cursor, align, capacity, far, end, time }
    }
}

prop_compose! {
    fn ack()(
        (far, stream, attempt, run, committed) in any::<(u64, u64, u64, u64, u64)>(),
        expected in pos(),
        (again, unknown, end_seen, window) in any::<(bool, bool, u32, u32)>(),
        far_end in end(),
    ) -> Ack {
        Ack { far, stream, attempt, run, committed, expected, again, unknown, far_end, end_seen, window }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(hello in hello(), ack in ack()) {
        let bytes = encode_hello(&hello);
        prop_assert_eq!(bytes.len(), HELLO_LEN);
        prop_assert_eq!(decode_hello(&bytes), Some(hello));
        prop_assert_eq!(decode_ack(&bytes), None);
        let bytes = encode_ack(&ack);
        prop_assert_eq!(bytes.len(), ACK_LEN);
        prop_assert_eq!(decode_ack(&bytes), Some(ack));
        prop_assert_eq!(decode_hello(&bytes), None);
    }

    #[test]
    fn a_stamp_is_decoded(
        (near, stream, seq, time, tag) in any::<(u64, u64, u64, u64, u64)>(),
        type_id: u32,
    ) {
        let stamp = Stamp { near, stream, seq, time, tag, type_id };
        let bytes = encode_stamp(&stamp);
        prop_assert_eq!(bytes.len(), STAMP_LEN);
        prop_assert_eq!(decode_stamp(&bytes), Some(stamp));
    }

    #[test]
    fn what_is_said_of_listeners_and_connections_is_decoded(
        (near, listener, connection) in any::<(u64, u64, u64)>(),
        terms in prop::option::of(any::<(u32, u32, u64, u64)>()),
        number: u32,
    ) {
        let terms = terms.map(|(max_in_flight, align, to_client, from_client)| {
            Terms { max_in_flight, align, to_client, from_client }
        });
        let offer = Offer { near, listener, terms };
        let bytes = encode_offer(&offer);
        prop_assert_eq!(bytes.len(), OFFER_LEN);
        prop_assert_eq!(decode_offer(&bytes), Some(offer));
        prop_assert_eq!(decode_head(&bytes), None);
        for about in [About::Want, About::Open, About::Opened, About::Over] {
            let head = Head { about, from: near, connection };
            let bytes = encode_note(&head, number);
            prop_assert_eq!(bytes.len(), NOTE_LEN);
            prop_assert_eq!((decode_head(&bytes), decode_note(&bytes)), (Some(head), Some(number)));
            prop_assert_eq!(decode_note(&bytes[..NOTE_LEN - 1]), None);
        }
    }

    /// Whatever is said of a connection's stream begins with whose and which it is.
    #[test]
    fn a_stream_s_messages_have_the_head(hello in hello(), ack in ack()) {
        let head = |about, from, connection| Some(Head { about, from, connection });
        prop_assert_eq!(decode_head(&encode_hello(&hello)), head(About::Hello, hello.near, hello.stream));
        prop_assert_eq!(decode_head(&encode_ack(&ack)), head(About::Ack, ack.far, ack.stream));
        prop_assert_eq!(decode_head(&begin_data(hello.near, hello.stream, 1, 0)), head(About::Data, hello.near, hello.stream));
    }

    #[test]
    fn records_are_decoded_one_after_another(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        cut in 0usize..400,
    ) {
        let mut bytes = begin_data(1, 2, 3, 0);
        let mut sent = Vec::new();
        for (i, payload) in payloads.iter().enumerate() {
            let frame = i as u64 * 64;
            let record = Record {
                start: Pos { frame, offset: 3 },
                next: frame + 64,
                tag: 5,
                seq: 6,
                time: 7,
                total: 3 + payload.len() as u32,
                type_id: 8,
            };
            push_record(&mut bytes, &record, payload);
            sent.push((record, payload.clone()));
        }
        let (header, mut rest) = decode_data(&bytes).unwrap();
        prop_assert_eq!(header, DataHeader { near: 1, stream: 2, attempt: 3 });
        let mut got = Vec::new();
        while let Some((record, payload)) = next_record(&mut rest) {
            got.push((record, payload.to_vec()));
        }
        prop_assert!(rest.is_empty());
        prop_assert_eq!(&got, &sent);
        // Cut short, it is a beginning of the same.
        if let Some((_, mut rest)) = decode_data(&bytes[..cut.min(bytes.len())]) {
            let mut i = 0;
            while let Some((record, payload)) = next_record(&mut rest) {
                prop_assert_eq!((&record, payload), (&sent[i].0, &sent[i].1[..]));
                i += 1;
            }
        }
    }

    #[test]
    fn bytes_of_anybody_decode_to_something_or_nothing(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 1u32..10) {
        if bytes.len() >= 8 {
            bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
            bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        }
        let _ = (decode_hello(&bytes), decode_ack(&bytes), decode_stamp(&bytes));
        let _ = (decode_offer(&bytes), decode_head(&bytes), decode_note(&bytes));
        if let Some((_, mut rest)) = decode_data(&bytes) {
            while let Some((record, payload)) = next_record(&mut rest) {
                prop_assert!(record.start.offset as usize + payload.len() <= record.total as usize);
            }
        }
    }
}

#[test]
fn names_in_keys() {
    let base = base("ramway", "/cell/");
    assert_eq!(base, "ramway/cell");
    assert_eq!(super::base("ramway", ""), "ramway");
    let key = key(&base, "ring", "camera-1.raw", "hello");
    assert_eq!(key, "ramway/cell/ring/camera-1.raw/hello");
    assert_eq!(name_in(&key, &base, "ring"), Some("camera-1.raw"));
    assert_eq!(name_in(&key, &base, "topic"), None);
    assert_eq!(name_in("ramway/cell/ring/../hello", &base, "ring"), None);
    assert_eq!(name_in("ramway/cell/ring/.bridge/hello", &base, "ring"), None);
}
