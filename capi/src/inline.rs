//! What `ramway_inline.h` stands on: the private state of both ends, field by field, and the slow halves that it calls.

use crate::either::each;
use crate::receiver::{ReceiverHandle, ramway_receiver};
use crate::sender::{SenderHandle, ramway_sender};
use crate::status::{guard_hot, ramway_status};
use ramway_core::ring::raw::RawEndpoint;

/// The private state that `ramway_inline.h` knows. Where it was compiled against another one, its functions call the
/// library for everything: right, but slower. Raised with every change of the fields or of their meaning.
pub const RAMWAY_INLINE_LAYOUT: u32 = 0x52_57_49_03;

/// The same for the private state of a publisher and of a subscriber.
pub const RAMWAY_INLINE_TOPIC_LAYOUT: u32 = 0x52_57_54_02;

/// The fields of a type are where the header's mirror has them: the same numbers stand there as `RAMWAY_AT(...)`, and
/// a test compares the two lists.
macro_rules! pinned {
    ($list:ident, $type:ty as $c:literal: $($($field:tt).+ = $offset:literal),+ $(,)?) => {
        const _: () = {
            $(assert!(std::mem::offset_of!($type, $($field).+) == $offset);)+
        };
        #[cfg(test)]
        const $list: &[(&str, &str, usize)] = &[$(($c, stringify!($($field).+), $offset)),+];
    };
}

pinned!(SENDER, SenderHandle as "ramway_inline_sender": hot = 0, layout = 8);
pinned!(RECEIVER, ReceiverHandle as "ramway_inline_receiver": hot = 0, layout = 8);
pinned!(PRODUCER, ramway_core::ring::producer::Producer as "ramway_producer":
    block = 0, data = 8, capacity = 16, max_len = 24, tail = 32, unflushed = 40, head = 48, slot = 56, tag = 64,
    align = 72, state.state = 76, state.peer_flags = 80, state.fences = 84, next_last_tag = 88);
pinned!(CONSUMER, ramway_core::ring::consumer::Consumer as "ramway_consumer":
    block = 0, data = 8, capacity = 16, head = 24, released = 32, tail = 40, align = 48, state.state = 52,
    state.peer_flags = 56, state.fences = 60);
pinned!(BLOCK, ramway_core::layout::RingBlock as "ramway_ring_block":
    geometry = 0, tail = 128, head = 256, producer = 384, consumer = 512);

const _: () = {
    assert!(size_of::<ramway_core::ring::producer::Producer>() == 104);
    assert!(size_of::<ramway_core::ring::consumer::Consumer>() == 72);
    assert!(size_of::<ramway_core::layout::RingBlock>() == 640);
};

/// For `ramway_inline.h`: the slow half of a publish whose fast half it did. Reads what the receiver says of
/// itself and wakes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inline_after_publish(sender: *mut ramway_sender) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { SenderHandle::from(sender) }?.sender, sender => drop(sender.wake()));
        Ok(())
    })
}

/// For `ramway_inline.h`: the slow half of a release whose fast half it did. Reads what the sender says of itself
/// and wakes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inline_after_release(receiver: *mut ramway_receiver) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { ReceiverHandle::from(receiver) }?.receiver, receiver => drop(receiver.wake()));
        Ok(())
    })
}

type Publishing = ramway_core::ring::producer::Producer<ramway_core::Topic>;
type Subscribing = ramway_core::ring::consumer::Consumer<ramway_core::Topic>;

pinned!(TOPIC_PRODUCER, Publishing as "ramway_topic_producer":
    block = 0, data = 8, capacity = 16, max_len = 24, tail = 32, unflushed = 40, head = 48, slot = 56, tag = 64,
    align = 72, state.state = 76, state.peer_flags = 80, state.fences = 84, commit.seq = 104, commit.last = 112,
    commit.timestamps = 120, more.word_seen = 128, more.published = 136, more.words.area = 144);
pinned!(TOPIC_CONSUMER, Subscribing as "ramway_topic_consumer":
    block = 0, data = 8, capacity = 16, head = 24, released = 32, tail = 40, align = 48, state.state = 52,
    state.peer_flags = 56, state.fences = 60, more.cursor = 72, more.expected = 80, more.copies_out = 88,
    more.policy = 92, more.words.area = 96);
pinned!(TOPIC_BLOCK, ramway_core::layout::TopicBlock as "ramway_topic_block":
    positions.0.tail = 128, positions.0.last = 136, claim = 256, starts = 384, publisher = 512);
pinned!(SUBSCRIBERS, ramway_core::layout::SubscribersHead as "ramway_subscribers": publisher_wait = 0, word = 128);

#[cfg(test)]
mod tests {
    use super::*;

    type Pins = [&'static [(&'static str, &'static str, usize)]];

    /// Compares a header with the fields of one kind of log, and these with a hash of what they were when the number was given:
    /// so that no program meets a library with other fields under the same number.
    fn compare(header: &str, pins: &Pins, knows: &str, layout: u32, expected: u64) {
        let mut theirs: Vec<String> = header
            .lines()
            .filter_map(|line| line.trim().strip_prefix("RAMWAY_AT("))
            .map(|line| line.trim_end_matches(");").to_owned())
            .collect();
        let mut ours: Vec<String> = pins
            .concat()
            .iter()
            // The last part of `state.peer_flags`: C has no struct within the struct.
            .map(|(c, field, offset)| format!("{c}, {}, {offset}", field.rsplit('.').next().unwrap().trim()))
            .collect();
        theirs.sort();
        ours.sort();
        assert_eq!(theirs, ours);
        assert!(header.contains(&format!("{knows} {layout:#x}")));
        let hash = ours
            .concat()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        assert_eq!(
            hash, expected,
            "the private state has changed ({hash:#x}): raise the number, here and in the header"
        );
    }

    #[test]
    fn the_headers_mirrors_have_the_same_offsets() {
        let (ring, topic) =
            (include_str!("../include/ramway_inline.h"), include_str!("../include/ramway/inline_topic.h"));
        assert_eq!(RAMWAY_INLINE_LAYOUT, 0x52_57_49_03);
        let pins = [SENDER, RECEIVER, PRODUCER, CONSUMER, BLOCK];
        compare(ring, &pins, "RAMWAY_INLINE_KNOWS", RAMWAY_INLINE_LAYOUT, 0xfae6_ea96_5d96_c8e3);
        assert_eq!(RAMWAY_INLINE_TOPIC_LAYOUT, 0x52_57_54_02);
        let pins = [TOPIC_PRODUCER, TOPIC_CONSUMER, TOPIC_BLOCK, SUBSCRIBERS];
        compare(topic, &pins, "RAMWAY_INLINE_TOPIC_KNOWS", RAMWAY_INLINE_TOPIC_LAYOUT, 0x4702_ac8c_8cf0_e9bc);
    }
}
