// Calls that may wait for a name, a role, a listener or memory: the native half has them in a thread of their own.
import { Attempt } from '../../native.cjs';
import { wrap } from '../errors.js';

/** What is opened by `open`. An abort gives it up, within 100 ms; what comes all the same is closed by `discard`. */
export async function opening<T extends { close(): void }>(
  signal: AbortSignal | undefined,
  open: (attempt: Attempt) => Promise<T>,
  discard = (opened: T) => opened.close(),
): Promise<T> {
  if (signal?.aborted) throw signal.reason;
  const attempt = new Attempt();
  const giveUp = () => attempt.giveUp();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    const opened = await open(attempt);
    if (!signal?.aborted) return opened;
    discard(opened);
    throw signal.reason;
  } catch (error) {
    throw signal?.aborted ? signal.reason : wrap(error);
  } finally {
    signal?.removeEventListener('abort', giveUp);
    // An attempt that is collected is given up: this keeps it until here.
    giveUp();
  }
}
