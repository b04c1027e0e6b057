// A turn of the event loop: how long messages are handled before timers and I/O get their chance. One clock for all
// handles of a thread, so that many of them share a turn instead of adding up.
import { setImmediate } from 'node:timers';

/** Milliseconds. What is late by it is late by no more than the message that was just being handled. */
const LONGEST = 1;
/** Steps between two looks at the clock, which costs as much as a small message. */
const STEPS = 32;

let began = 0;
let steps = 0;
/** The rest of the turn that everybody waits for, while somebody does. */
let next: Promise<void> | null = null;

/** A step of work is done: whether the turn has lasted long enough. Each caller does a step in every turn. */
export function isOver(): boolean {
  if (++steps < STEPS) return false;
  steps = 0;
  return performance.now() - began > LONGEST;
}

/** A step that may have taken long, as handling a batch does. */
export function isOverNow(): boolean {
  return performance.now() - began > LONGEST;
}

/** Something has called into JavaScript from outside: a turn begins. */
export function begin(): void {
  began = performance.now();
}

/** Resolves in the next turn, after timers and I/O. */
export function over(): Promise<void> {
  next ??= new Promise((resolve) => {
    setImmediate(() => {
      next = null;
      begin();
      resolve();
    });
  });
  return next;
}
