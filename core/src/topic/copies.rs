//! Where a subscriber copies messages to that it may not read in place.

/// Copies of messages that are not released yet. None of them moves while another is made.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Each has its capacity reserved and stays where it is. The last one is filled next.
    chunks: Vec<Vec<u8>>,
    /// Bytes of the last chunk that kept copies take.
    taken: usize,
    /// Where the room ends that was given last, in the last chunk.
    end: usize,
    /// Bytes that kept copies take in all chunks.
    held: usize,
    /// The most that was ever held.
    most: usize,
}

/// The smallest chunk.
const CHUNK: usize = 64 << 10;

impl Copies {
    /// Room for `len` bytes whose address has the same remainder by `align` as `like`: so what is aligned in a message is
    /// aligned in its copy. The same room is given again until [`keep`](Self::keep) is called: a copy that is thrown away
    /// takes none.
    pub(super) fn room(&mut self, len: usize, like: *const u8, align: usize) -> *mut u8 {
        // A tensor's elements begin on a multiple of 64.
        let align = align.max(64);
        let need = len + align;
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - self.taken < need) {
            // For all that was ever held at a time: batches of the same size come to fit into one chunk, and then allocate
            // nothing.
            let larger = self.held.max(self.most).saturating_add(need);
            if self.taken == 0 {
                // Nothing is kept in it.
                self.chunks.pop();
            }
            self.chunks.push(Vec::with_capacity(larger.max(CHUNK)));
            self.taken = 0;
        }
        let chunk = self.chunks.last_mut().expect("pushed above");
        let free = chunk.as_mut_ptr().wrapping_add(self.taken);
        let skip = like.addr().wrapping_sub(free.addr()) & (align - 1);
        self.end = self.taken + skip + len;
        free.wrapping_add(skip)
    }

    /// What was copied to the room that was given last stays until [`clear`](Self::clear).
    pub(super) fn keep(&mut self) {
        self.held += self.end - self.taken;
        self.taken = self.end;
    }

    /// How many bytes the kept copies take.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Every copy is released.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.held != 0 {
            self.release_all();
        }
    }

    fn release_all(&mut self) {
        self.most = self.most.max(self.held);
        (self.taken, self.held) = (0, 0);
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
            // A copy that is not kept leaves its room to the next one.
            assert_eq!(copies.room(100 + i, like, 4096), to);
            copies.keep();
            // SAFETY: room for this many bytes.
            unsafe { to.write_bytes(i as u8, 100 + i) };
            made.push((to, i));
        }
        for (at, i) in made {
            // SAFETY: written above, and nothing was cleared since.
            let bytes = unsafe { std::slice::from_raw_parts(at, 100 + i) };
            assert!(bytes.iter().all(|byte| *byte == i as u8));
        }
        assert!(copies.held() >= (100..2100).sum());
        copies.clear();
        assert_eq!((copies.chunks.len(), copies.taken, copies.held()), (1, 0, 0));
    }

    #[test]
    fn batches_of_the_same_size_come_to_fit_into_one_chunk() {
        let mut copies = Copies::default();
        for batch in 0..20 {
            for _ in 0..100 {
                copies.room(5000, std::ptr::null(), 32);
                copies.keep();
            }
            assert!(batch < 10 || copies.chunks.len() == 1, "{} chunks in batch {batch}", copies.chunks.len());
            copies.clear();
        }
    }

    #[test]
    fn copies_that_are_thrown_away_take_nothing() {
        let mut copies = Copies::default();
        for len in (0..1 << 20).step_by(1000) {
            copies.room(len, std::ptr::null(), 32);
        }
        assert_eq!((copies.chunks.len(), copies.held()), (1, 0));
    }
}
