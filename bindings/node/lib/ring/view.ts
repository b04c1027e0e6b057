// What of a ring is handed out as views, and how that ends: an ArrayBuffer of its own, detached at the release.
import * as native from '../../native.cjs';
import { call } from '../errors.js';

/** Bytes from which on making a buffer is put ahead: V8 counts its length as memory to be collected, and begins to collect where
 * that grows by 64 MiB. */
const LARGE = 32 << 20;

/** The buffer for the next large message, made while nobody waits for it: when the message before it was released, over as many
 * bytes from where the next one will begin. Used only if that is exactly where the next one is, so a program that gets it
 * reaches no byte more than with one of its own. */
export class Ahead {
  private buffer: ArrayBuffer | null = null;
  private start = 0;

  constructor(private readonly native: native.NativeEndpoint) {}

  make(start: number, length: number): void {
    this.drop();
    this.start = start;
    this.buffer = call(() => this.native.view(start, length));
  }

  /** The buffer, if it is for exactly these bytes; else null, and a buffer for others is dropped. */
  take(start: number, length: number): ArrayBuffer | null {
    const { buffer } = this;
    if (buffer === null) return null;
    if (this.start !== start || buffer.byteLength !== length) {
      this.drop();
      return null;
    }
    this.buffer = null;
    return buffer;
  }

  /** Before the memory is unmapped or mapped elsewhere. */
  drop(): void {
    if (this.buffer !== null) native.detach(this.buffer);
    this.buffer = null;
  }
}

/** A buffer over a piece of a ring, from its first use to its end. */
export class SharedView {
  private buffer: ArrayBuffer | null = null;
  private whole: Uint8Array | null = null;

  /** Of the doubled data. */
  constructor(
    private readonly native: native.NativeEndpoint,
    private readonly start: number,
    private readonly length: number,
    private readonly ahead: Ahead | null = null,
  ) {}

  /** Its length, if it is in use and so long that the next buffer should be made ahead; else 0. */
  get large(): number {
    return this.buffer !== null && this.length >= LARGE ? this.length : 0;
  }

  /** All of it. */
  all(): Uint8Array {
    // An empty buffer would look like one that was transferred away.
    if (this.length === 0) return new Uint8Array(0);
    this.whole ??= new Uint8Array(this.shared());
    return this.whole;
  }

  /** A view of `length` bytes, at least 1, at `at` of the doubled data. Throws if the program has transferred the buffer away. */
  view(at: number, length: number): Uint8Array {
    // Half of what `subarray` costs; `whole.buffer` would be a call out of compiled code (docs/adr/0035).
    return new Uint8Array(this.buffer ?? this.shared(), at - this.start, length);
  }

  private shared(): ArrayBuffer {
    const { start, length } = this;
    this.buffer ??= this.ahead?.take(start, length) ?? call(() => this.native.view(start, length));
    return this.buffer;
  }

  /** Whether the program has transferred the buffer away. */
  get moved(): boolean {
    return this.buffer !== null && this.buffer.byteLength === 0;
  }

  /** Ends all views. Where the buffer was transferred away, it keeps private memory with what it showed;
   * then this gives a new buffer over the whole data to work on. */
  end(): ArrayBuffer | null {
    const buffer = this.buffer;
    if (buffer === null) return null;
    this.buffer = this.whole = null;
    if (buffer.byteLength === 0) return call(() => this.native.cut(this.start, this.length));
    native.detach(buffer);
    return null;
  }
}
