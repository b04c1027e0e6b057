// What of a ring is handed out as views, and how that ends: an ArrayBuffer of its own, detached at the release.
import * as native from '../../native.cjs';
import { call } from '../errors.js';

/** A buffer over a piece of a ring, from its first use to its end. */
export class SharedView {
  private buffer: ArrayBuffer | null = null;
  private whole: Uint8Array | null = null;

  /** Of the doubled data. */
  constructor(
    private readonly native: native.NativeEndpoint,
    private readonly start: number,
    private readonly length: number,
  ) {}

  /** All of it. */
  all(): Uint8Array {
    // An empty buffer would look like one that was transferred away.
    if (this.length === 0) return new Uint8Array(0);
    if (this.whole === null) {
      this.buffer = call(() => this.native.view(this.start, this.length));
      this.whole = new Uint8Array(this.buffer);
    }
    return this.whole;
  }

  /** A view of `length` bytes at `at` of the doubled data. */
  view(at: number, length: number): Uint8Array {
    // Faster than a new Uint8Array over the buffer: 120 against 180 ns in Node (docs/adr/0021).
    return this.all().subarray(at - this.start, at - this.start + length);
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
