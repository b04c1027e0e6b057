import type { ErrorKind } from './facts.js';
import type { CallStatus } from './rpc/errors.js';

export type { ErrorKind } from './facts.js';

/** What goes wrong here. An abort rejects with the signal's own reason instead. */
export class RamwayError extends Error {
  /** `ERR_RAMWAY_PEER_DEAD` for `PeerDead`, and so on. */
  readonly code: string;
  /** The kind's name; of a {@link CallError} that has a status, the status's. */
  readonly kind: ErrorKind | CallStatus;
  /** The operating system's number, where it had a part in it. */
  declare readonly errno?: number;
  /** Of `Lagged`: how many messages the subscriber has lost by having been ejected. */
  declare readonly lost?: number;

  /** `number`: of `Lagged` what was lost, else the system's. */
  constructor(kind: ErrorKind | CallStatus, message: string, number?: number) {
    super(message);
    this.kind = kind;
    this.code = codeOf(kind);
    if (kind === 'Lagged') Object.defineProperty(this, 'lost', { value: number ?? 0, enumerable: true });
    else if (number) Object.defineProperty(this, 'errno', { value: number, enumerable: true });
  }

  override get name(): string {
    return 'RamwayError';
  }
}

function codeOf(kind: ErrorKind | CallStatus): string {
  return `ERR_RAMWAY${kind.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** An error of the native half, "ramway KIND number text", as its users see it; anything else as it is. */
export function wrap(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof RamwayError) return error;
  const parts = /^ramway (\w+) (\d+) ([\s\S]*)$/.exec(error.message);
  return parts ? new RamwayError(parts[1] as ErrorKind, parts[3]!, Number(parts[2])) : error;
}

/** Calls the native half. */
export function call<T>(native: () => T): T {
  try {
    return native();
  } catch (error) {
    throw wrap(error);
  }
}

export function invalid(message: string): RamwayError {
  return new RamwayError('InvalidArgument', message);
}

/** What no program that was read by a type checker passes: an option that there is not, options that are no object. */
export function mistake(message: string): TypeError {
  return Object.assign(new TypeError(message), {
    code: codeOf('InvalidArgument'),
    kind: 'InvalidArgument' as ErrorKind,
  });
}

/** Whether the time was up. */
export function isTimeOut(error: unknown): boolean {
  return error instanceof RamwayError && error.kind === 'TimedOut';
}

/** Whether the other side closed in an orderly way. */
export function isEnd(error: unknown): boolean {
  return error instanceof RamwayError && error.kind === 'Closed';
}
