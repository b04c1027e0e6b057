//! A buffer as a file of bounded size, against a vector with a cursor; and what readers put into it.

use bytes::BufMut;
use proptest::prelude::*;
use ramway_pool::{Buffer, BufferPool};
use std::io::{self, BufRead, Cursor, ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// What an owner before leaves behind.
const OLD: u8 = 0xa5;

/// A buffer whose memory somebody had before and filled with [`OLD`].
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut first = pool.get_uninit(len);
    first.fill(MaybeUninit::new(OLD));
    let at = first.as_mut_ptr();
    drop(first);
    let second = pool.get(len);
    assert_eq!(second.as_ptr(), at.cast_const(), "the same memory");
    second
}

#[derive(Clone, Debug)]
enum Call {
    Write(Vec<u8>),
    WriteAll(Vec<u8>),
    WriteVectored(Vec<u8>, Vec<u8>),
    Seek(SeekFrom),
    SetPosition(u64),
    Read(usize),
    ReadExact(usize),
    ReadVectored(usize, usize),
    ReadToEnd,
    ReadUntil(u8),
    Extend(Vec<u8>),
    Put(Vec<u8>),
    ReadFrom(Vec<u8>, usize),
    Resize(usize),
    Truncate(usize),
    Clear,
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    // No byte is OLD.
    prop::collection::vec(0_u8..0x80, 0..40)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let place = || prop_oneof![10 => 0_u64..100, 1 => Just(u64::MAX), 1 => Just(1 << 40)];
    let by = || prop_oneof![10 => -70_i64..70, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let call = prop_oneof![
        4 => data().prop_map(Call::Write),
        2 => data().prop_map(Call::WriteAll),
        2 => (data(), data()).prop_map(|(a, b)| Call::WriteVectored(a, b)),
        2 => place().prop_map(|to| Call::Seek(SeekFrom::Start(to))),
        2 => by().prop_map(|by| Call::Seek(SeekFrom::Current(by))),
        2 => by().prop_map(|by| Call::Seek(SeekFrom::End(by))),
        1 => place().prop_map(Call::SetPosition),
        2 => (0_usize..40).prop_map(Call::Read),
        1 => (0_usize..40).prop_map(Call::ReadExact),
        1 => (0_usize..40, 0_usize..40).prop_map(|(a, b)| Call::ReadVectored(a, b)),
        1 => Just(Call::ReadToEnd),
        1 => (0_u8..0x80).prop_map(Call::ReadUntil),
        2 => data().prop_map(Call::Extend),
        1 => data().prop_map(Call::Put),
        2 => (data(), 0_usize..60).prop_map(|(data, n)| Call::ReadFrom(data, n)),
        1 => (0_usize..90).prop_map(Call::Resize),
        2 => (0_usize..90).prop_map(Call::Truncate),
        1 => Just(Call::Clear),
    ];
    prop::collection::vec(call, 1..40)
}

/// A vector that is not let grow beyond `room`, with a cursor.
struct Model {
    room: usize,
    file: Cursor<Vec<u8>>,
}

impl Model {
    fn write(&mut self, bytes: &[u8]) -> usize {
        let left = (self.room as u64).saturating_sub(self.file.position());
        let count = (bytes.len() as u64).min(left) as usize;
        if count == 0 { 0 } else { self.file.write(&bytes[..count]).unwrap() }
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let fits = self.file.get_ref().len() + bytes.len() <= self.room;
        if fits {
            self.file.get_mut().extend_from_slice(bytes);
        }
        fits
    }
}

fn check(buffer: &mut Buffer, model: &mut Model, call: &Call) {
    match call {
        Call::Write(bytes) => assert_eq!(buffer.write(bytes).unwrap(), model.write(bytes)),
        Call::WriteAll(bytes) => {
            let all = model.write(bytes) == bytes.len();
            match buffer.write_all(bytes) {
                Ok(()) => assert!(all),
                Err(error) => assert!(!all && error.kind() == ErrorKind::WriteZero),
            }
        }
        Call::WriteVectored(a, b) => {
            let count = model.write(a);
            let count = if count == a.len() { count + model.write(b) } else { count };
            assert_eq!(buffer.write_vectored(&[IoSlice::new(a), IoSlice::new(b)]).unwrap(), count);
        }
        Call::Seek(to) => match (buffer.seek(*to), model.file.seek(*to)) {
            (Ok(at), Ok(expected)) => assert_eq!(at, expected),
            (Err(error), Err(_)) => assert_eq!(error.kind(), ErrorKind::InvalidInput),
            other => panic!("{other:?}"),
        },
        Call::SetPosition(to) => {
            buffer.set_position(*to);
            model.file.set_position(*to);
        }
        Call::Read(count) => {
            let (mut a, mut b) = (vec![0; *count], vec![0; *count]);
            assert_eq!(buffer.read(&mut a).unwrap(), model.file.read(&mut b).unwrap());
            assert_eq!(a, b);
        }
        Call::ReadExact(count) => {
            let unread = (model.file.get_ref().len() as u64).saturating_sub(model.file.position());
            let (mut a, mut b) = (vec![0; *count], vec![0; *count]);
            if *count as u64 <= unread {
                buffer.read_exact(&mut a).unwrap();
                model.file.read_exact(&mut b).unwrap();
            } else {
                assert_eq!(buffer.read_exact(&mut a).unwrap_err().kind(), ErrorKind::UnexpectedEof);
            }
            assert_eq!(a, b);
        }
        Call::ReadVectored(a, b) => {
            let read = |from: &mut dyn Read| {
                let (mut a, mut b) = (vec![0; *a], vec![0; *b]);
                let count = from.read_vectored(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)]).unwrap();
                (count, a, b)
            };
            assert_eq!(read(buffer), read(&mut model.file));
        }
        Call::ReadToEnd => {
            let (mut a, mut b) = (vec![1], vec![1]);
            assert_eq!(buffer.read_to_end(&mut a).unwrap(), model.file.read_to_end(&mut b).unwrap());
            assert_eq!(a, b);
        }
        Call::ReadUntil(byte) => {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            assert_eq!(buffer.read_until(*byte, &mut a).unwrap(), model.file.read_until(*byte, &mut b).unwrap());
            assert_eq!(a, b);
        }
        Call::Extend(bytes) => assert_eq!(buffer.extend_from_slice(bytes).is_ok(), model.append(bytes)),
        Call::Put(bytes) => {
            if model.append(bytes) {
                buffer.put(&bytes[..]);
            }
        }
        Call::ReadFrom(bytes, n) => {
            let fits = *n <= model.room - model.file.get_ref().len();
            let count = bytes.len().min(*n);
            match buffer.read_from(&mut &bytes[..], *n) {
                Ok(got) => assert!(fits && got == count && model.append(&bytes[..count])),
                Err(error) => assert!(!fits && error.kind() == ErrorKind::InvalidInput),
            }
        }
        Call::Resize(len) => match buffer.resize(*len, 7) {
            Ok(()) => {
                assert!(*len <= model.room);
                model.file.get_mut().resize(*len, 7);
            }
            Err(_) => assert!(*len > model.room),
        },
        Call::Truncate(len) => {
            buffer.truncate(*len);
            model.file.get_mut().truncate(*len);
        }
        Call::Clear => {
            buffer.clear();
            model.file.get_mut().clear();
            model.file.set_position(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes; see below")]
    fn a_buffer_is_a_vector_with_a_cursor_that_does_not_grow(room in 0_usize..80, calls in calls()) {
        static POOL: LazyLock<BufferPool> = LazyLock::new(BufferPool::new);
        check_all(&POOL, room, &calls);
    }
}

fn check_all(pool: &BufferPool, room: usize, calls: &[Call]) {
    let mut buffer = used(pool, room);
    let mut model = Model { room, file: Cursor::new(Vec::new()) };
    for call in calls {
        check(&mut buffer, &mut model, call);
        assert_eq!(&buffer[..], &model.file.get_ref()[..], "{call:?}");
        assert_eq!(buffer.position(), model.file.position(), "{call:?}");
        assert_eq!(buffer.capacity(), room);
        assert!(!buffer.contains(&OLD), "{call:?} shows what somebody else wrote: {:x?}", &buffer[..]);
    }
}

/// Every call once and more, also for miri.
#[test]
fn a_buffer_is_a_vector_with_a_cursor_in_a_few_cases() {
    let data = || vec![1, 2, 3, 4, 5];
    let calls = [
        Call::Write(data()),
        Call::Seek(SeekFrom::End(3)),
        Call::WriteAll(data()),
        Call::SetPosition(2),
        Call::WriteVectored(data(), data()),
        Call::Extend(data()),
        Call::Seek(SeekFrom::Current(-4)),
        Call::Read(3),
        Call::Put(data()),
        Call::ReadExact(2),
        Call::ReadExact(200),
        Call::ReadVectored(1, 2),
        Call::Truncate(9),
        Call::Seek(SeekFrom::Start(11)),
        Call::Write(data()),
        Call::Seek(SeekFrom::Start(1)),
        Call::ReadUntil(4),
        Call::ReadFrom(data(), 4),
        Call::ReadToEnd,
        Call::SetPosition(u64::MAX),
        Call::Read(1),
        Call::Write(data()),
        Call::Seek(SeekFrom::Current(1)),
        Call::Resize(30),
        Call::Resize(8),
        Call::Clear,
        Call::Seek(SeekFrom::Start(4)),
        Call::WriteAll(data()),
    ];
    let pool = BufferPool::new();
    for room in [0, 1, 9, 12, 20, 33, 64] {
        check_all(&pool, room, &calls);
    }
}

#[test]
fn a_gap_becomes_zeros() {
    let pool = BufferPool::new();
    let half = if cfg!(miri) { 1 << 9 } else { 1 << 19 };
    let mut buffer = used(&pool, 2 * half);
    buffer.write_all(b"ab").unwrap();
    buffer.seek(SeekFrom::Start(half as u64)).unwrap();
    assert_eq!(buffer.len(), 2, "a seek writes nothing");
    assert_eq!(buffer.write(b"").unwrap(), 0);
    assert_eq!(buffer.len(), 2, "nor does a write of nothing");
    buffer.write_all(b"cd").unwrap();
    assert_eq!(buffer.len(), half + 2);
    assert_eq!(&buffer[..2], b"ab");
    assert!(buffer[2..half].iter().all(|&byte| byte == 0));
    assert_eq!(&buffer[half..], b"cd");
    buffer.seek(SeekFrom::Start(2 * half as u64)).unwrap();
    assert_eq!(buffer.write(b"e").unwrap(), 0, "full");
    assert_eq!(buffer.len(), half + 2, "and nothing was zeroed for it");
    // What its own owner cut off does not come back either.
    buffer.truncate(1);
    buffer.seek(SeekFrom::Start(3)).unwrap();
    buffer.write_all(b"f").unwrap();
    assert_eq!(buffer, b"a\0\0f");
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn copying_into_a_buffer_stops_at_its_capacity() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(10_000);
    let error = io::copy(&mut io::repeat(1).take(20_000), &mut buffer).unwrap_err();
    assert_eq!((error.kind(), buffer.len()), (ErrorKind::WriteZero, 10_000));
    let error = write!(pool.get(3), "{}", 12345).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
}

/// A reader that looks at what it was given, and does as it is told.
struct Reader<F>(F);

impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Read for Reader<F> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        (self.0)(to)
    }
}

#[test]
fn a_reader_is_shown_nothing_old() {
    let pool = BufferPool::new();
    let len = if cfg!(miri) { 1 << 10 } else { 1 << 20 };
    let mut buffer = used(&pool, len);
    buffer.extend_from_slice(b"front").unwrap();
    let (mut calls, mut sum) = (0, 0_usize);
    let mut reader = Reader(|to: &mut [u8]| {
        calls += 1;
        assert!(!to.is_empty());
        // Its own marks from the call before are there where it wrote more than it said.
        assert!(to.iter().all(|&byte| byte == 0 || byte == 1), "{:x?}", to.iter().find(|&&byte| byte > 1));
        match calls {
            1 => return Err(ErrorKind::Interrupted.into()),
            2 => to.fill(1),
            _ => {}
        }
        let count = to.len().div_ceil(if calls % 3 == 0 { 2 } else { 7 });
        to[..count].fill(2);
        sum += count;
        Ok(count)
    });
    let room = buffer.remaining_capacity();
    assert_eq!(buffer.read_from(&mut reader, room).unwrap(), room);
    assert_eq!((sum, buffer.len()), (room, len));
    assert!(calls > 3, "{calls} calls");
    assert_eq!(&buffer[..5], b"front");
    assert!(buffer[5..].iter().all(|&byte| byte == 2));
}

#[test]
fn a_reader_may_end_fail_lie_or_panic() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 1000);
    assert_eq!(buffer.read_from(&mut io::empty(), 1000).unwrap(), 0);
    assert_eq!(buffer.read_from(&mut io::repeat(1), 0).unwrap(), 0);
    let error = buffer.read_from(&mut io::repeat(1), 1001).unwrap_err();
    assert_eq!((error.kind(), buffer.len()), (ErrorKind::InvalidInput, 0));

    // What came before an error stays.
    let mut first = true;
    let mut reader = Reader(|to: &mut [u8]| {
        if !std::mem::take(&mut first) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        to[..3].copy_from_slice(b"abc");
        Ok(3)
    });
    assert_eq!(buffer.read_from(&mut reader, 1000).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(buffer, b"abc");

    let liar = catch_unwind(AssertUnwindSafe(|| buffer.read_from(&mut Reader(|to: &mut [u8]| Ok(to.len() + 1)), 10)));
    assert_eq!(*liar.unwrap_err().downcast::<String>().unwrap(), "the reader says it read 11 of 10 bytes");
    let liar = catch_unwind(AssertUnwindSafe(|| buffer.read_from(&mut Reader(|_: &mut [u8]| Ok(usize::MAX)), 10)));
    assert!(liar.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        buffer.read_from(
            &mut Reader(|to: &mut [u8]| {
                to.fill(9);
                panic!("halfway")
            }),
            10,
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(buffer, b"abc");
    // A reader that says it wrote what it did not gives zeros, not what was there.
    assert_eq!(buffer.read_from(&mut Reader(|to: &mut [u8]| Ok(to.len())), 997).unwrap(), 997);
    assert!(buffer[13..].iter().all(|&byte| byte == 0));
}
