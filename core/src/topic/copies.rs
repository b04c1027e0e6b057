//! Where a subscriber copies messages to that it may not read in place.

/// Copies of messages that are not released yet. None of them moves while another is made.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Each has its capacity reserved and stays where it is. The last one is filled next.
    chunks: Vec<Vec<u8>>,
    /// Bytes of the last chunk that are taken.
    taken: usize,
}

/// The smallest chunk.
const CHUNK: usize = 64 << 10;

impl Copies {
    /// Room for `len` bytes whose address has the same remainder by `align` as `like`: so what is aligned in a message is
    /// aligned in its copy.
    pub(super) fn room(&mut self, len: usize, like: *const u8, align: usize) -> *mut u8 {
        // A tensor's elements begin on a multiple of 64.
        let align = align.max(64);
        let need = len + align;
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - self.taken < need) {
            self.chunks.push(Vec::with_capacity(need.max(CHUNK)));
            self.taken = 0;
        }
        let chunk = self.chunks.last_mut().expect("pushed above");
        let free = chunk.as_mut_ptr().wrapping_add(self.taken);
        let skip = like.addr().wrapping_sub(free.addr()) & (align - 1);
        self.taken += skip + len;
        free.wrapping_add(skip)
    }

    /// Every copy is released.
    pub(super) fn clear(&mut self) {
        self.taken = 0;
        if self.chunks.len() > 1 {
            // The largest stays: the next batch may fit into it.
            let largest = self.chunks.iter_mut().max_by_key(|chunk| chunk.capacity()).map(std::mem::take);
            self.chunks.clear();
            self.chunks.extend(largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_alignment_of_what_it_copies_and_does_not_move() {
        let mut copies = Copies::default();
        let source = [0u8; 8192];
        let mut made = Vec::new();
        for (i, offset) in (0..2000).map(|i| (i, i * 7 % 4096)) {
            let like = &raw const source[offset];
            let to = copies.room(100 + i, like, 4096);
            assert_eq!(to.addr() % 4096, like.addr() % 4096);
            // SAFETY: room for this many bytes.
            unsafe { to.write_bytes(i as u8, 100 + i) };
            made.push((to, i));
        }
        for (at, i) in made {
            // SAFETY: written above, and nothing was cleared since.
            let bytes = unsafe { std::slice::from_raw_parts(at, 100 + i) };
            assert!(bytes.iter().all(|byte| *byte == i as u8));
        }
        copies.clear();
        assert_eq!((copies.chunks.len(), copies.taken), (1, 0));
    }
}
