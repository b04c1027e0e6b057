// A turn of the event loop: how long messages are handled before timers and I/O get their chance. One clock for all
// handles of a thread, so that many of them share a turn instead of adding up.
import { setImmediate } from 'node:timers';

/** Milliseconds. What is late by it is late by no more than the message that was just being handled. */
const LONGEST = 1;
/** Small messages between two looks at the clock, which costs as much as a small message. */
const STEPS = 32;

let began = 0;
let steps = 0;
/** The rest of the turn that everybody waits for, while somebody does. */
let next: Promise<void> | null = null;

/** Work is done, of about as many small messages: whether the turn has lasted long enough. Each caller does some work in
 * every turn. */
export function isOver(work = 1): boolean {
  steps += work;
  if (steps < STEPS) return false;
  steps = 0;
  if (performance.now() - began <= LONGEST) return false;
  // The next turn begins whether or not somebody still waits for it then: a wait can be given up.
  void over();
  return true;
}

/** The work that a message of this many bytes is for whoever reads them. */
export function workOf(bytes: number): number {
  return 1 + (bytes >>> 10);
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
