// An iteration of the event loop: how long messages are handled before timers and I/O run. One clock for all handles of a
// thread, so that many of them share an iteration instead of adding up.
import { setImmediate } from 'node:timers';

/** Milliseconds. What is late by it is late by no more than the message that was just being handled. */
const LONGEST = 1;
/** Small messages between two readings of the clock, each of which costs as much as a small message. */
const STEPS = 32;

let began = 0;
let steps = 0;
/** The next iteration, while something waits for it. */
let next: Promise<void> | null = null;

/** Work is done, of about as many small messages: whether the iteration has lasted long enough. Each caller does some
 * work in every iteration. */
export function isOver(work = 1): boolean {
  steps += work;
  if (steps < STEPS) return false;
  steps = 0;
  if (performance.now() - began <= LONGEST) return false;
  // The next iteration begins whether or not something still waits for it then: a wait can be given up.
  void over();
  return true;
}

/** The work of reading a message of this many bytes, in small messages. */
export function workOf(bytes: number): number {
  return 1 + (bytes >>> 10);
}

/** Something has called into JavaScript from outside: an iteration begins. */
export function begin(): void {
  began = performance.now();
}

/** Resolves in the next iteration, after timers and I/O. */
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
