// What programs share that check what is collected.
import { readdirSync } from 'node:fs';

/** Collects garbage. Node.js and Deno need `--expose-gc`. */
export function collectNow() {
  const { gc, Bun } = /** @type {any} */ (globalThis);
  if (gc) gc();
  else Bun?.gc(true);
}

/** Collects garbage several times, and lets finalizers run. */
export async function collect() {
  for (let i = 0; i < 4; i++) {
    collectNow();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** How many descriptors this process has open. */
export const descriptors = () => readdirSync('/proc/self/fd').length;
