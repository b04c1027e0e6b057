// Pictures out of the ring, whichever camera is at its other end.
import { Ring } from 'ramway';
import { I420, intact, parse, RING } from './frame.mjs';

/**
 * @typedef {'waiting' | 'live' | 'dead' | 'ended'} State no camera yet, pictures come, it was killed, it closed the ring
 */

/**
 * The newest picture each time, forever: when the camera goes, the ring is opened anew for the next one.
 *
 * `frame` lies in the shared memory, uncopied, until the caller asks for the next one. `skipped` are the pictures that
 * came before it since the last one: a viewer that is behind gets the newest, not a queue.
 * @param {string} name
 * @param {{ signal: AbortSignal, onState: (state: State) => void }} options
 */
export async function* newest(name, { signal, onState }) {
  onState('waiting');
  for (;;) {
    const receiver = await Ring.openOrCreate(name, { ...RING, timeout: 5000 }).receiver({ signal });
    try {
      let live = false;
      for await (const batch of receiver.batches({ signal })) {
        if (!live) onState('live');
        live = true;
        const message = batch.at(batch.length - 1);
        const frame = message?.typeId === I420 ? parse(message.data) : null;
        if (!message || !frame || !intact(frame))
          throw new Error(`what came through '${name}' is not a camera's picture`);
        yield { message, frame, skipped: batch.length - 1 };
      }
      onState('ended');
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== 'ERR_RAMWAY_PEER_DEAD') throw error;
      onState('dead');
    } finally {
      // The last one out of an empty ring takes its name away: the next camera starts a new one.
      receiver.close();
    }
  }
}
