//! Which messages of a receiver are still held, and how far the ring may take its memory back.

use crate::ring::message::Message;
use std::collections::VecDeque;
use std::ptr::NonNull;

/// The messages that were received and not all given back, oldest first.
#[derive(Default)]
pub(crate) struct Held {
    /// The first one was not given back.
    messages: VecDeque<Entry>,
    /// The number of the first one. Numbers count all messages of the receiver.
    first: u64,
    /// The numbers of the first and the last message of the last batch.
    batch: (u64, u64),
}

struct Entry {
    /// Where it ends in the ring.
    end: u64,
    given_back: bool,
    /// Whose it is, once that is made. Alive while it is not given back: its end gives it back.
    owner: Option<NonNull<Message>>,
}

// SAFETY: the addresses are followed only while this is changed by nobody else, which a message's end would have to.
unsafe impl Send for Held {}

impl Held {
    /// Notes a message that ends at `position`; gives its number.
    #[inline]
    pub(crate) fn push(&mut self, position: u64) -> u64 {
        self.messages.push_back(Entry { end: position, given_back: false, owner: None });
        self.next() - 1
    }

    /// The number of the message that is noted next.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// Notes that what lies up to `position` is given back together with the messages before it. False if there are none.
    pub(crate) fn push_given_back(&mut self, position: u64) -> bool {
        let Some(last) = self.messages.back() else { return false };
        if last.end != position {
            self.messages.push_back(Entry { end: position, given_back: true, owner: None });
        }
        true
    }

    /// Notes whose a message is.
    #[inline]
    pub(crate) fn belongs_to(&mut self, number: u64, owner: &Message) {
        self.messages[(number - self.first) as usize].owner = Some(NonNull::from(owner));
    }

    /// Notes that the messages from this number on were received by one call.
    pub(crate) fn batch_since(&mut self, number: u64) {
        self.batch = (number, self.last());
    }

    fn last(&self) -> u64 {
        self.next().wrapping_sub(1)
    }

    /// The messages of the last receive, by number, if nothing older is held.
    pub(crate) fn latest(&self) -> Vec<(u64, NonNull<Message>)> {
        let since = if self.last() == self.batch.1 { self.batch.0 } else { self.last() };
        if self.messages.is_empty() || self.first < since {
            return Vec::new();
        }
        let held = self.messages.iter().zip(self.first..).filter(|(entry, _)| !entry.given_back);
        held.filter_map(|(entry, number)| Some((number, entry.owner?))).collect()
    }

    /// A message is given back. Gives up to where everything is now, if that is further than before.
    #[inline]
    pub(crate) fn give_back(&mut self, number: u64) -> Option<u64> {
        let index = (number - self.first) as usize;
        if index != 0 {
            self.messages[index].given_back = true;
            return None;
        }
        let mut end = self.messages.pop_front()?.end;
        self.first += 1;
        while let Some(&Entry { end: next, given_back: true, .. }) = self.messages.front() {
            self.messages.pop_front();
            self.first += 1;
            end = next;
        }
        Some(end)
    }

    /// The message that was noted last is not held after all. Gives where the one before it ends, if one is held.
    pub(crate) fn forget_last(&mut self) -> Option<u64> {
        self.messages.pop_back();
        self.messages.back().map(|entry| entry.end)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many messages are not given back.
    pub(crate) fn len(&self) -> usize {
        self.messages.iter().filter(|entry| !entry.given_back).count()
    }
}
