/** What a server replied: bytes that belong to the caller. Of a stream: one of its elements. */
export class Reply {
  /** @internal */
  constructor(
    /** The reply's bytes: a copy, which nothing changes any more. */
    readonly body: Uint8Array,
    /** Metadata: bytes that the application defines; empty if the server gave none. */
    readonly meta: Uint8Array,
  ) {}

  /** The body as UTF-8 text. */
  text(): string {
    return decoder.decode(this.body);
  }
}

const decoder = new TextDecoder();
