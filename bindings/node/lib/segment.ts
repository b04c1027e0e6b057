// What is there: the segments of a directory, and how to be rid of them.
import * as native from '../native.cjs';
import { call, type RamwayError, wrap } from './errors.js';
import { nameOf, read, SEGMENTS_CLEAN } from './options.js';

export type SegmentKind = 'ring' | 'region' | 'listener' | 'bus' | 'topic';

/** A file of the directory. Where `error` is there, it could not be read as a segment, and only name and path are. */
export interface Segment {
  readonly name: string;
  readonly path: string;
  /** ERR_RAMWAY_ABI_MISMATCH for what is not Ramway's or of another version, ERR_RAMWAY_CORRUPT,
   * ERR_RAMWAY_PERMISSION_DENIED. */
  readonly error?: RamwayError;
  readonly kind?: SegmentKind;
  /** A living process uses it. */
  readonly inUse?: boolean;
  /** The name stays when the last user goes. */
  readonly persistent?: boolean;
  /** Nobody uses it: left behind by processes that died, or by another boot. */
  readonly stale?: boolean;
  /** Bytes of the file. */
  readonly size?: number;
  /** Bytes of data, of a ring and a region. */
  readonly capacity?: number;
  /** What payloads are aligned to, of a ring. */
  readonly align?: number;
  /** Bytes that are sent and not released, of a ring. */
  readonly used?: number;
  /** Messages of a ring that nobody has received; missing if it moves too fast to count them, or is damaged. */
  readonly undelivered?: number;
  /** A living process is the sender of a ring, or listens. */
  readonly producerHeld?: boolean;
  /** A living process is the receiver of a ring. */
  readonly consumerHeld?: boolean;
}

/** What {@link clean} may do. */
export interface CleanOptions {
  /** The directory. Default: the one that names stand in, RAMWAY_DIR or /dev/shm/ramway-UID. */
  directory?: string | undefined;
  /** Also removes unused segments that may be wanted: with undelivered messages, or persistent. */
  undelivered?: boolean | undefined;
  /** Only says what would be removed. */
  dryRun?: boolean | undefined;
}

/** What became of a file, or with `dryRun` would become of it. */
export interface Cleaned {
  readonly name: string;
  /** `'failed'`: see `error`. */
  readonly outcome: 'removed' | 'kept' | 'not-ramway' | 'failed';
  /** Why it was kept. */
  readonly reason?: string;
  readonly error?: RamwayError;
}

/** The segments of a directory, by default of the one that names stand in. None if the default one does not exist. */
export function ls(directory?: string): Segment[] {
  const dir = directory === undefined ? null : nameOf('ls', directory);
  return call(() => native.ls(dir)).map(tidied) as unknown as Segment[];
}

/** Removes a segment by its name or path, whatever it holds: also a persistent one, also undelivered messages.
 *
 * ERR_RAMWAY_BUSY if a process uses it, ERR_RAMWAY_NOT_FOUND; what is no segment of Ramway's is never touched. */
export function unlink(name: string): void {
  const at = nameOf('unlink', name);
  call(() => native.unlink(at));
}

/** Removes the segments that no process uses and that hold nothing. Never one in use, never what is not
 * Ramway's. Gives what became of each file. */
export function clean(options?: CleanOptions): Cleaned[] {
  const { directory, undelivered, dryRun } = read('clean', SEGMENTS_CLEAN, options);
  const all = call(() => native.clean(directory ?? null, undelivered ?? false, dryRun ?? false));
  return all.map((cleaned) => tidied({ ...cleaned, outcome: cleaned.outcome ?? 'failed' })) as unknown as Cleaned[];
}

/** Without what is not there, and with an error that is one. */
function tidied(record: object): Record<string, unknown> {
  const there = Object.entries(record).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    there.map(([name, value]) => [name, name === 'error' ? wrap(new Error(value as string)) : value]),
  );
}
