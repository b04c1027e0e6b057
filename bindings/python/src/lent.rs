//! Which messages of a receiver are still looked at, and how far the ring may take its memory back.

use std::collections::VecDeque;

/// The messages that were received and not all given back, oldest first.
#[derive(Default)]
pub(crate) struct Lent {
    /// Where each ends in the ring, and whether it was given back. The first one never was.
    messages: VecDeque<(u64, bool)>,
    /// The number of the first one. Numbers count all messages of the receiver.
    first: u64,
}

impl Lent {
    /// Notes a message that ends at `position`; gives its number.
    #[inline]
    pub(crate) fn push(&mut self, position: u64) -> u64 {
        self.messages.push_back((position, false));
        self.first + self.messages.len() as u64 - 1
    }

    /// A message is given back. Gives up to where everything is now, if that is further than before.
    #[inline]
    pub(crate) fn give_back(&mut self, number: u64) -> Option<u64> {
        let index = (number - self.first) as usize;
        if index != 0 {
            self.messages[index].1 = true;
            return None;
        }
        let (mut end, _) = self.messages.pop_front()?;
        self.first += 1;
        while let Some(&(next, true)) = self.messages.front() {
            self.messages.pop_front();
            self.first += 1;
            end = next;
        }
        Some(end)
    }

    /// The message that was noted last is not lent after all. Gives where the one before it ends, if one is lent.
    pub(crate) fn forget_last(&mut self) -> Option<u64> {
        self.messages.pop_back();
        self.messages.back().map(|&(end, _)| end)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many messages are not given back.
    pub(crate) fn len(&self) -> usize {
        self.messages.iter().filter(|(_, back)| !back).count()
    }
}
