// The numbers that both halves of a topic's end have besides the positions (src/topic.rs has the table), as indices of 32-bit
// words: the low half of each; the high half follows.

export const NOTES = {
  // Of a publisher.
  limit: 0,
  word: 2,
  seq: 4,
  last: 6,
  time: 8,
  // Of a subscriber.
  position: 0,
  peer: 2,
  expected: 4,
  lost: 6,
} as const;
