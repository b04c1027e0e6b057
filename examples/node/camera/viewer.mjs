// One browser. It says what it has drawn, and gets no more than two pictures ahead of that.
import { end } from '../pages.mjs';
import { prefix } from './frame.mjs';

/** Pictures on the way: one is drawn while the next one travels. More would only be older when they are seen. */
const UNDER_WAY = 2;

/** The clock of the pictures' time stamps, in milliseconds since 1970 with a fraction. */
export const now = () => performance.timeOrigin + performance.now();

export class Viewer {
  #socket;
  #sent = 0;
  #drawn = 0;
  #nodeSkipped = 0;
  #pageSkipped = 0;

  /** @param {import('ws').WebSocket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => {
      if (isBinary || !this.#heard(String(data))) socket.close(1008, 'what is that?');
    });
    // 'close' follows.
    socket.on('error', () => {});
  }

  /** Whether it can take a picture now. */
  get ready() {
    return this.#sent - this.#drawn < UNDER_WAY && this.#socket.readyState === this.#socket.OPEN;
  }

  /** Pictures that nobody got, because this process was behind. */
  missed(/** @type {number} */ count) {
    this.#nodeSkipped += count;
  }

  /** A picture that others may get. */
  skip() {
    this.#pageSkipped++;
  }

  /**
   * The socket keeps the bytes until the kernel has taken them, which may be long after this returns: they must not be
   * a view of the ring.
   * @param {Uint8Array} picture a whole message of the camera
   * @param {number} received
   */
  show(picture, received) {
    const sequence = ++this.#sent;
    const said = prefix({ sequence, nodeSkipped: this.#nodeSkipped, pageSkipped: this.#pageSkipped, received });
    // One message in two fragments: the picture itself is the same bytes for all browsers.
    this.#socket.send(said, { binary: true, fin: false });
    this.#socket.send(picture, { binary: true, fin: true });
  }

  tell(/** @type {object} */ what) {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(what));
  }

  close() {
    end(this.#socket, 'the server ends');
  }

  /** @returns {boolean} whether it made sense */
  #heard(/** @type {string} */ text) {
    try {
      const { drawn, clock } = JSON.parse(text);
      if (Number.isInteger(drawn) && drawn > this.#drawn && drawn <= this.#sent) this.#drawn = drawn;
      else if (typeof clock === 'number') this.tell({ clock: [clock, now()] });
      else return false;
      return true;
    } catch {
      return false;
    }
  }
}
