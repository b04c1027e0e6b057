//! Size classes: eight a doubling, so that a block is at most an eighth longer than what was asked for (a sixteenth on
//! average). Powers of two would waste a third, and classes four times apart more than half; with sixteen a doubling a
//! mixed load finds its size idle less often than this saves.

/// Classes there are. Those below [`SMALLEST`] are never used: the number is a power of two so that an index can be
/// masked instead of checked.
pub(crate) const CLASSES: usize = if cfg!(loom) { 8 } else { 256 };

/// Bytes of the smallest block.
pub(crate) const SMALLEST: usize = 64;

/// What [`of`] subtracts: exponent and digits of 32.
const FIRST: usize = (32_f64.to_bits() >> 49) as usize;

/// Bytes of the largest block: 128 GiB.
pub(crate) const LARGEST: usize = size(CLASSES - 1);

/// The smallest class whose blocks have room for `len` bytes, which is at least [`SMALLEST`]; [`CLASSES`] or more if
/// there is none.
#[inline(always)]
pub(crate) const fn of(len: usize) -> usize {
    // Of the last byte's offset the highest bit says which doubling, the next three which eighth of it: what a
    // floating-point number has in its exponent and its first three digits. (Finding the highest bit takes longer where
    // the compiler may not assume LZCNT.) A number that is rounded is beyond all classes.
    let last = (len - 1) as i64 as f64;
    ((last.to_bits() >> 49) as usize).wrapping_sub(FIRST)
}

/// Bytes of the blocks of a class.
pub(crate) const fn size(class: usize) -> usize {
    (9 + (class & 7)) << ((class >> 3) + 2)
}

/// The largest class whose blocks are no longer than `cap` bytes, which is at least [`SMALLEST`].
pub(crate) const fn within(cap: usize) -> usize {
    let class = of(cap);
    if class >= CLASSES {
        CLASSES - 1
    } else if size(class) == cap {
        class
    } else {
        class - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_room_and_wastes_at_most_an_eighth() {
        for len in (SMALLEST..70_000).chain((17..38).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let class = of(len);
            if len > LARGEST {
                assert!(class >= CLASSES, "{len}");
                continue;
            }
            assert!(size(class) >= len, "{len} in {}", size(class));
            assert!(size(class) - len <= len / 8, "{len} in {}", size(class));
            assert!(size(class - 1) < len, "{len} would fit into {}", size(class - 1));
            assert!(size(within(len)) <= len && size(within(len) + 1) > len, "{len}");
        }
    }

    #[test]
    fn the_sizes_are_whole_words_and_end_at_128_gib() {
        assert_eq!((of(SMALLEST), size(of(SMALLEST))), (7, 64));
        assert_eq!(LARGEST, 128 << 30);
        assert!((7..CLASSES).all(|class| size(class).is_multiple_of(8) && of(size(class)) == class));
        assert!(of(usize::MAX) >= CLASSES && of(LARGEST + 1) >= CLASSES);
        assert_eq!(within(usize::MAX), CLASSES - 1);
    }
}
