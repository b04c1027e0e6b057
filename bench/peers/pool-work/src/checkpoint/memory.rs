//! Where a tensor's bytes go: from a pool, or allocated for it.

use crate::Result;
use ramway_pool::{Buffer, BufferPool};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// What O_DIRECT wants of addresses, lengths and places.
pub const SECTOR: usize = 4096;

/// What a pool is asked for where `room` bytes are wanted. Buffers of a pool come back in any order; if lengths are asked
/// for in steps of an eighth, as the pool allocates, any that it gives is as long as the one that was registered.
pub fn in_steps(room: usize) -> usize {
    let room = room.max(SECTOR);
    room.next_multiple_of((1 << room.ilog2()) / 8)
}

/// Bytes on a boundary, allocated for one tensor.
pub struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: the only owner of plain memory.
unsafe impl Send for Aligned {}

impl Aligned {
    fn new(len: usize) -> Result<Self> {
        let layout = Layout::from_size_align(len.max(1), SECTOR)?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) });
        let start = start.unwrap_or_else(|| handle_alloc_error(layout));
        Ok(Self { start, layout, len: 0 })
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

enum Block {
    Pool(Buffer),
    Vec(Vec<u8>),
    Aligned(Aligned),
}

/// Memory for one tensor: the bytes from the file, and what had to be read around them.
pub struct Tensor {
    block: Block,
    /// Bytes that are to be read.
    room: usize,
    /// How many of them come before the tensor's.
    skip: usize,
    /// Bytes of the tensor.
    len: usize,
}

impl Tensor {
    /// All that is to be read, whatever is in it.
    pub fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        let spare = match &mut self.block {
            Block::Pool(buffer) => {
                buffer.clear();
                buffer.spare_capacity_mut()
            }
            Block::Vec(vec) => {
                vec.clear();
                vec.spare_capacity_mut()
            }
            Block::Aligned(aligned) => {
                aligned.len = 0;
                // SAFETY: the memory is ours, for as many bytes as the layout says.
                unsafe { std::slice::from_raw_parts_mut(aligned.start.as_ptr().cast(), aligned.layout.size()) }
            }
        };
        &mut spare[..self.room]
    }

    /// All of its memory, which may be longer.
    pub fn whole(&mut self) -> (*mut u8, usize) {
        let room = self.room();
        let (start, room) = (room.as_mut_ptr().cast(), room.len());
        match &self.block {
            Block::Pool(buffer) => (start, buffer.capacity()),
            _ => (start, room),
        }
    }

    /// Says that all of the tensor is there.
    ///
    /// # Safety
    /// All of [`room`](Self::room) up to the tensor's end has been written.
    pub unsafe fn written(&mut self) {
        let end = self.skip + self.len;
        // SAFETY: the caller wrote as much, and there is as much room.
        unsafe {
            match &mut self.block {
                Block::Pool(buffer) => buffer.set_len(end),
                Block::Vec(vec) => vec.set_len(end),
                Block::Aligned(aligned) => aligned.len = end,
            }
        }
    }

    /// The tensor's bytes, after [`written`](Self::written).
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.block {
            Block::Pool(buffer) => buffer,
            Block::Vec(vec) => vec,
            // SAFETY: so many bytes are initialised.
            Block::Aligned(aligned) => unsafe { std::slice::from_raw_parts(aligned.start.as_ptr(), aligned.len) },
        };
        &all[self.skip..]
    }

    /// Overwrites everything, so that what the next load shows was loaded by it.
    pub fn spoil(&mut self) {
        self.room().fill(MaybeUninit::new(0xA5));
    }
}

/// How memory for a tensor is had, and what becomes of it.
pub enum Memory {
    /// From a pool, and back to it.
    Pool(BufferPool),
    /// From a pool that is made for one load and dropped after it.
    PoolForOnce(Mutex<Option<BufferPool>>),
    /// `Vec::with_capacity`, dropped.
    WithCapacity,
    /// `vec![0; n]`, dropped.
    Zeroed,
    /// On a page's boundary, dropped: what O_DIRECT takes.
    Aligned,
    /// Allocated once for the whole run, a piece for each tensor: no load can cost less than with this.
    Kept(Mutex<Vec<Option<Tensor>>>),
}

impl Memory {
    /// Nothing kept yet, for so many tensors.
    pub fn kept(tensors: usize) -> Self {
        Self::Kept(Mutex::new((0..tensors).map(|_| None).collect()))
    }

    /// Memory for tensor `index`, which has `len` bytes of `skip + len` (and what a sector's end takes) to be read.
    pub fn take(&self, index: usize, room: usize, skip: usize, len: usize) -> Result<Tensor> {
        let block = match self {
            Self::Pool(pool) => Block::Pool(pool.try_get(in_steps(room))?),
            Self::PoolForOnce(pool) => {
                let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
                Block::Pool(pool.get_or_insert_with(BufferPool::new).try_get(room)?)
            }
            Self::WithCapacity => Block::Vec(Vec::with_capacity(room)),
            Self::Zeroed => Block::Vec(vec![0; room]),
            Self::Aligned => Block::Aligned(Aligned::new(room)?),
            Self::Kept(kept) => {
                let tensor = kept.lock().unwrap_or_else(PoisonError::into_inner)[index].take();
                match tensor {
                    Some(tensor) => return Ok(tensor),
                    None => Block::Vec(Vec::with_capacity(room)),
                }
            }
        };
        Ok(Tensor { block, room, skip, len })
    }

    /// The end of a load.
    pub fn give_back(&self, tensors: Vec<Tensor>) {
        match self {
            Self::Kept(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                for (place, tensor) in kept.iter_mut().zip(tensors) {
                    *place = Some(tensor);
                }
            }
            Self::PoolForOnce(pool) => {
                drop(tensors);
                pool.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
            _ => drop(tensors),
        }
    }
}
