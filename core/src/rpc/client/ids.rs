//! Which calls are in flight, by the ids of their frames.

use std::collections::HashMap;

/// A table of ids, each of which stands at its lowest bits: they are counted up, so calls that are in flight together rarely have
/// the same ones. Where two have, the later one is kept apart.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// A power of two of them, or none: id and place. No id is 0.
    slots: Vec<(u64, u32)>,
    apart: HashMap<u64, u32>,
    len: usize,
}

/// Slots of the first table.
const FEW: usize = 64;

impl Ids {
    #[inline]
    fn slot(&self, id: u64) -> usize {
        // Before the first insertion: one that no table has.
        id as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place of an id.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<u32> {
        match self.slots.get(self.slot(id)) {
            Some((there, place)) if *there == id && id != 0 => Some(*place),
            _ => self.get_apart(id),
        }
    }

    #[cold]
    fn get_apart(&self, id: u64) -> Option<u32> {
        self.apart.get(&id).copied()
    }

    /// An id that is not there, and not 0.
    #[inline]
    pub(super) fn insert(&mut self, id: u64, place: u32) {
        if 2 * self.len >= self.slots.len() {
            self.grow();
        }
        self.len += 1;
        let at = self.slot(id);
        match &mut self.slots[at] {
            slot if slot.0 == 0 => *slot = (id, place),
            _ => self.set_apart(id, place),
        }
    }

    #[cold]
    fn set_apart(&mut self, id: u64, place: u32) {
        self.apart.insert(id, place);
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![(0, 0); (2 * self.slots.len()).max(FEW)];
        let old = std::mem::replace(&mut self.slots, slots);
        let apart = std::mem::take(&mut self.apart);
        self.len = 0;
        for (id, place) in old.into_iter().filter(|(id, _)| *id != 0).chain(apart) {
            self.insert(id, place);
        }
    }

    /// Removes an id that is there.
    #[inline]
    pub(super) fn remove(&mut self, id: u64) {
        self.len -= 1;
        let at = self.slot(id);
        if self.slots[at].0 == id {
            self.slots[at].0 = 0;
        } else {
            self.apart.remove(&id);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_were_issued_are_found_whatever_stays() {
        let mut ids = Ids::default();
        assert_eq!((ids.get(0), ids.get(1), ids.get(u64::MAX)), (None, None, None));
        let (mut there, mut next) = (Vec::new(), 0);
        // Each 7th stays for good, of the others 20 at a time are there.
        for _ in 0..2000 {
            next += 1;
            ids.insert(next, next as u32 * 3);
            there.push(next);
            if there.len() > 20 + next as usize / 7 {
                let at = there.iter().position(|id| id % 7 != 0).unwrap();
                ids.remove(there.remove(at));
            }
        }
        assert_eq!(ids.len(), there.len());
        for id in 0..=next + 10 {
            assert_eq!(ids.get(id), there.contains(&id).then_some(id as u32 * 3), "{id}");
        }
        assert!(ids.slots.len() <= 4 * ids.len(), "{} slots for {}", ids.slots.len(), ids.len());
        for id in there {
            ids.remove(id);
        }
        assert_eq!((ids.len(), ids.apart.len()), (0, 0));
    }
}
