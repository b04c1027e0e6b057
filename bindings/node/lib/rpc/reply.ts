import { CallError } from './errors.js';

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

/** A method of a server. */
export interface MethodInfo {
  /** The number that calls name it by. */
  readonly number: number;
  /** The name that its number was made from, if it has one. */
  readonly name: string | undefined;
}

/** @internal What the method *describe* replied: lines of a number and a name. */
export function methodsOf({ body }: Reply): MethodInfo[] {
  const wrong = () =>
    new CallError('Corrupt', "the server's description of its methods is not lines of a number and a name", true);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw wrong();
  }
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  return lines.map((line) => {
    const parts = /^(\d{1,10})(?: (.*))?$/.exec(line);
    const number = Number(parts?.[1]);
    if (!(number >>> 0 === number)) throw wrong();
    return { number, name: parts![2] };
  });
}
