//! What must not compile: seen by `cargo test --doc` only. Each example differs from one that compiles in the line that is
//! wrong, so that it fails for that and not for a typing error.

/// Bytes that nobody wrote are not bytes.
///
/// ```compile_fail,E0308
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_uninit(4);
/// let bytes: &[u8] = &buffer;
/// ```
///
/// ```
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_uninit(4).write_from_slice(b"1234");
/// let bytes: &[u8] = &buffer;
/// ```
pub struct NobodyReadsWhatNobodyWrote;

/// Neither is the room of a buffer that stands empty.
///
/// ```compile_fail,E0308
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(4);
/// let room: &mut [u8] = buffer.spare_capacity_mut();
/// ```
///
/// ```
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(4);
/// let room: &mut [std::mem::MaybeUninit<u8>] = buffer.spare_capacity_mut();
/// ```
pub struct RoomIsNotBytes;

/// Nobody says that bytes are written without answering for it.
///
/// ```compile_fail,E0133
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_uninit(4).assume_init();
/// ```
///
/// ```compile_fail,E0133
/// let pool = ramway_pool::BufferPool::new();
/// pool.get(4).set_len(0);
/// ```
///
/// ```
/// let pool = ramway_pool::BufferPool::new();
/// // SAFETY: none of it is said to be written.
/// unsafe { pool.get(4).set_len(0) };
/// ```
pub struct SetLenIsUnsafe;

/// A slice does not outlive its buffer, whose memory is somebody else's after that.
///
/// ```compile_fail,E0505
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// let bytes: &[u8] = &buffer;
/// drop(buffer);
/// assert_eq!(bytes[0], 0);
/// ```
///
/// ```compile_fail,E0505
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// let bytes: &[u8] = &buffer;
/// let frozen = buffer.freeze();
/// assert_eq!(bytes[0], 0);
/// ```
///
/// ```
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// let bytes: &[u8] = &buffer;
/// assert_eq!(bytes[0], 0);
/// drop(buffer);
/// ```
pub struct SlicesEndWithTheirBuffer;

/// A buffer is one owner's: it is handed on, not copied.
///
/// ```compile_fail,E0599
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// let other = buffer.clone();
/// ```
///
/// ```compile_fail,E0382
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// std::thread::spawn(move || drop(buffer));
/// assert_eq!(buffer[0], 0);
/// ```
///
/// ```
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_zeroed(4);
/// let other = buffer.freeze().clone();
/// std::thread::spawn(move || drop(other)).join().unwrap();
/// ```
pub struct OneOwner;
