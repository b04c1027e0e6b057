// What callers pass as options, checked in one place: each is read once, and what is no option is a mistake.
import { type ErrorKind, invalid, mistake, RamwayError } from './errors.js';

/** How blocking calls wait: 'spin' never sleeps, 'hybrid' polls for a while and then sleeps, 'block' sleeps at once. */
export type WaitPolicy = 'spin' | 'hybrid' | 'block';

/** What every ring's ends have. */
interface EndsOfRing {
  /** How the ends wait. Default 'hybrid'. */
  wait?: WaitPolicy | undefined;
  /** Whether this process may use `membarrier(2)`, which takes a fence off every message. Default true. */
  membarrier?: boolean | undefined;
}

/** What every mapping has. */
interface Mapped {
  /** Locks the data into memory (`mlock`). */
  lockMemory?: boolean | undefined;
  /** Faults all of the data in now instead of on first use. */
  prefault?: boolean | undefined;
}

/** Where the memory of something new is. */
export interface PlacementOptions extends Mapped {
  /** Puts the data into huge pages, or fails with ERR_RAMWAY_UNSUPPORTED naming the setting that stands in the way. */
  hugePages?: boolean | undefined;
  /** Has the data's memory on this NUMA node. */
  numaNode?: number | undefined;
}

/** How a named ring is made or opened. */
export interface RingOptions extends PlacementOptions, EndsOfRing {
  /**
   * Bytes of data, 16 of each message being its header; rounded up to a power of two of at least a page. Default 1 MiB.
   * An existing ring must have just this capacity if it is said here.
   */
  capacity?: number | undefined;
  /** What each payload's address is a multiple of: a power of two from 16 (the default) to 4096. */
  align?: number | undefined;
  /** `Ring.create` only: throws away undelivered messages that dead processes left. Never those of live ones. */
  discard?: boolean | undefined;
  /** Keeps the name when the last user goes. Not with `Ring.open`. */
  persistent?: boolean | undefined;
  /** Permissions of the new file, whatever the umask. Default 0o600. Not with `Ring.open`. */
  mode?: number | undefined;
  /**
   * Milliseconds to wait for a ring that is not there yet (`Ring.open`), or for a role that is taken. Default 0;
   * `Infinity`: as long as it takes.
   */
  timeout?: number | undefined;
  /** Accepts a file system that is not in memory. */
  allowDisk?: boolean | undefined;
}

/** How a named topic is made or opened. */
export interface TopicOptions extends PlacementOptions, EndsOfRing {
  /** Bytes of data, 32 of each message being its header; rounded up to a power of two of at least a page. Default 1 MiB. A message
   * takes at most half of it. An existing topic must have just this capacity if it is said here. */
  capacity?: number | undefined;
  /** What each payload's place in the topic is a multiple of: a power of two from 32 (the default) to 4096. */
  align?: number | undefined;
  /** How many reliable subscribers there can be at a time, 1 to 1024; default 32. Others take a free slot of the upper half. */
  slots?: number | undefined;
  /** A new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such. */
  lossyOnly?: boolean | undefined;
  /** The publisher of a new topic may eject a reliable subscriber that holds it up. An existing one must be such. */
  mayEject?: boolean | undefined;
  /** `Topic.create` only: throws away what durable subscribers that are away have not received. */
  discard?: boolean | undefined;
  /** Keeps the name when the last user goes. Not with `Topic.open`. */
  persistent?: boolean | undefined;
  /** Permissions of the new file, whatever the umask. Default 0o600. Not with `Topic.open`. */
  mode?: number | undefined;
  /** Milliseconds to wait for a topic that is not there yet (`Topic.open`), for the publisher's role, a slot or a label that is
   * taken. Default 0; `Infinity`: as long as it takes. */
  timeout?: number | undefined;
  /** Accepts a file system that is not in memory. */
  allowDisk?: boolean | undefined;
}

/** How a ring without a name is opened by its descriptor. */
export interface FromFdOptions extends EndsOfRing, Mapped {
  /** Milliseconds to wait for a role that is taken. Default 0; `Infinity`: as long as it takes. */
  timeout?: number | undefined;
}

/** How a ring without a name is made, and opened here. */
export interface UnnamedOptions extends FromFdOptions {
  /** Bytes of data, 16 of each message being its header; rounded up to a power of two of at least a page. Default 1 MiB. */
  capacity?: number | undefined;
  /** What each payload's address is a multiple of: a power of two from 16 (the default) to 4096. */
  align?: number | undefined;
  /** Puts the data into huge pages, or fails with ERR_RAMWAY_UNSUPPORTED naming the setting that stands in the way. */
  hugePages?: boolean | undefined;
  /** Has the data's memory on this NUMA node. */
  numaNode?: number | undefined;
}

/** Both ends of a ring without a name. */
export interface PairOptions {
  /** What each payload's address is a multiple of: a power of two from 16 (the default) to 4096. */
  align?: number | undefined;
  /** How the ends wait. Default 'hybrid'. */
  wait?: WaitPolicy | undefined;
}

/** How a bus is connected. */
export interface ConnectOptions extends EndsOfRing {
  /** Other users whose listeners will do; without this, only those of our own effective user. */
  allowUids?: readonly number[] | undefined;
}

/** How an RPC server is connected to. */
export interface RpcConnectOptions extends ConnectOptions {
  /** Bytes of replies that nobody has taken yet, all calls together; a reply beyond fails its call (ERR_RAMWAY_TOO_LARGE).
   * Default 4 times the ring's capacity. */
  maxBuffered?: number | undefined;
}

/** How connections are taken, and what buses they get. */
export interface ListenOptions extends EndsOfRing {
  /** Bytes of both rings of every bus, each rounded up to a power of two of at least a page. Default 1 MiB. */
  capacity?: number | undefined;
  /** Bytes of the ring to the peer, where it is not `capacity`; 0 leaves this direction out. */
  toPeer?: number | undefined;
  /** Bytes of the ring from the peer, where it is not `capacity`; 0 leaves this direction out. */
  fromPeer?: number | undefined;
  /** What each payload's address is a multiple of: a power of two from 16 (the default) to 4096. */
  align?: number | undefined;
  /** Permissions of the socket, whatever the umask. Default 0o600, or 0o666 with `allowUids`. */
  mode?: number | undefined;
  /** Other users who may connect; without this, only our own effective user. */
  allowUids?: readonly number[] | undefined;
  /** Milliseconds that a connector may take for each step of the handshake before it is refused. Default 1000. */
  handshakeTimeout?: number | undefined;
  /** How many connectors may wait to be accepted. Default 128. */
  backlog?: number | undefined;
}

/** How an RPC server is bound. */
export interface RpcServerOptions {
  /** Bytes of both rings of every client, rounded up to a power of two of at least a page. Default 1 MiB. The longest request and
   * the longest reply are 32 bytes shorter. */
  capacity?: number | undefined;
  /** What each payload's address is a multiple of: a power of two from 16 (the default) to 4096. */
  align?: number | undefined;
  /** Permissions of the socket, whatever the umask. Default 0o600, or 0o666 with `allowUids`. */
  mode?: number | undefined;
  /** Other users who may connect; without this, only our own effective user. */
  allowUids?: readonly number[] | undefined;
  /** Milliseconds that a client may take for each step of the handshake before it is refused. Default 1000. */
  handshakeTimeout?: number | undefined;
  /** How the server waits in the event loop: 'spin' polls in every iteration, 'hybrid' for a while, 'block' not at all. Default
   * 'hybrid'. */
  wait?: WaitPolicy | undefined;
  /** How many clients there may be at a time; one beyond is refused. Default 128. A client that is gone counts until its handlers have
   * ended. */
  maxClients?: number | undefined;
  /** How many calls a client may have in flight, from 1 to 1,048,576; those beyond wait in the client. Default 1024. */
  maxInFlight?: number | undefined;
  /** Bytes of requests and replies that are copied for one client at a time. A request beyond is answered with `Overloaded`, a
   * reply beyond with `ReplyTooLarge`. Default 4 × the capacity. */
  maxBytes?: number | undefined;
}

/** How an existing region is opened. */
export interface RegionOpenOptions extends Mapped {
  /** Opens without the permission to write: no `buffer`, no `notify`, and `waitAsync` polls every millisecond. */
  readOnly?: boolean | undefined;
  /** Milliseconds to wait for a region that is not there yet. Default 0; `Infinity`: as long as it takes. */
  timeout?: number | undefined;
  /** How `waitSync` waits. Default 'hybrid'. */
  wait?: WaitPolicy | undefined;
}

/** How a region is made. */
export interface RegionOptions extends PlacementOptions {
  /** Leaves the region in place when its last user goes. */
  persistent?: boolean | undefined;
  /** `Region.create` only: throws away a persistent region that nobody uses. */
  discard?: boolean | undefined;
  /** Accepts a file system that is not in memory. */
  allowDisk?: boolean | undefined;
  /** Permissions of the new file, whatever the umask. Default 0o600. */
  mode?: number | undefined;
  /** How `waitSync` waits. Default 'hybrid'. */
  wait?: WaitPolicy | undefined;
}

type Reader<T> = (value: unknown) => T | Expected;
type Shape = Readonly<Record<string, Reader<unknown>>>;
/** What a shape reads: an option that was left out, or given as undefined, is not there. */
export type Read<S extends Shape> = { [K in keyof S]?: Exclude<ReturnType<S[K]>, Expected> };

/** What a reader says of a value that will not do. */
class Expected {
  constructor(
    readonly text: string,
    readonly kind: ErrorKind = 'InvalidArgument',
  ) {}
}

function whole(most: number, unit: string): Reader<number> {
  const expected = new Expected(`a whole number${unit} from 0 to ${most}`);
  return (value) =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most ? (value as number) : expected;
}

const bytes = whole(Number.MAX_SAFE_INTEGER, ' of bytes');
// Its data, mapped twice, is one ArrayBuffer, and an index into it a 32-bit number.
const RING_MAX = 2 ** 30;
const ringExpected = new Expected(`at most ${RING_MAX} bytes: JavaScript works with no larger rings`, 'Unsupported');
const ringBytes: Reader<number> = (value) =>
  Number.isSafeInteger(value) && (value as number) > RING_MAX ? ringExpected : bytes(value);
const u32 = whole(0xffff_ffff, '');
const permissions = whole(0o7777, '');

const flagExpected = new Expected('true or false');
const flag: Reader<boolean> = (value) => (typeof value === 'boolean' ? value : flagExpected);

const policyExpected = new Expected("'spin', 'hybrid' or 'block'");
const policy: Reader<WaitPolicy> = (value) =>
  value === 'spin' || value === 'hybrid' || value === 'block' ? value : policyExpected;

const millisecondsExpected = new Expected('a number of milliseconds from 0 on');
const milliseconds: Reader<number> = (value) =>
  typeof value === 'number' && value >= 0 ? value : millisecondsExpected;

const signalExpected = new Expected('an AbortSignal');
const signal: Reader<AbortSignal> = (value) => (isSignal(value) ? value : signalExpected);

const uidsExpected = new Expected('an array of user numbers');
const uids: Reader<number[]> = (value) =>
  Array.isArray(value) && value.every((uid) => Number.isInteger(uid) && uid >= 0 && uid <= 0xffff_ffff)
    ? [...value]
    : uidsExpected;

const mapped = { lockMemory: flag, prefault: flag };
const placement = { ...mapped, hugePages: flag, numaNode: u32 };

/** For {@link Ring}; the shapes of the others below. */
export const RING_FROM_FD = { timeout: milliseconds, wait: policy, membarrier: flag, ...mapped };
export const RING_UNNAMED = { ...RING_FROM_FD, capacity: ringBytes, align: u32, ...placement };
export const RING = { ...RING_UNNAMED, discard: flag, persistent: flag, mode: permissions, allowDisk: flag };
export const TOPIC = { ...RING, slots: u32, lossyOnly: flag, mayEject: flag };
export const PAIR = { align: u32, wait: policy };
export const WAIT = { timeout: milliseconds, signal };
export const SYNC = { timeout: milliseconds, allowMainThread: flag };
const publisher = { ejectAfter: milliseconds, timestamps: flag };
export const PUBLISHER = { ...publisher, ...WAIT };
export const PUBLISHER_SYNC = { ...publisher, ...SYNC };
const placeExpected = new Expected("'oldest' or 'now'");
const place: Reader<'oldest' | 'now'> = (value) => (value === 'oldest' || value === 'now' ? value : placeExpected);
const messages = whole(Number.MAX_SAFE_INTEGER, ' of messages');
const textExpected = new Expected('a string');
const text: Reader<string> = (value) => (typeof value === 'string' ? value : textExpected);
const subscriber = {
  start: place,
  history: messages,
  afterSeq: messages,
  label: text,
  durable: flag,
  readOnly: flag,
};
export const SUBSCRIBER = { ...subscriber, ...WAIT };
export const SUBSCRIBER_SYNC = { ...subscriber, ...SYNC };
export const SIGNAL = { signal };
const ends = { allowUids: uids, wait: policy, membarrier: flag };
export const CONNECT = { ...ends, ...WAIT };
export const CONNECT_SYNC = { ...ends, ...SYNC };
export const RPC_CONNECT = { ...CONNECT, maxBuffered: bytes };
export const RPC_CONNECT_SYNC = { ...CONNECT_SYNC, maxBuffered: bytes };
const bind = {
  capacity: ringBytes,
  toPeer: ringBytes,
  fromPeer: ringBytes,
  align: u32,
  mode: permissions,
  handshakeTimeout: milliseconds,
  backlog: u32,
  ...ends,
};
export const BIND = { ...bind, signal };
export const BIND_SYNC = bind;
export const LISTEN = { ...bind, ...WAIT };
export const LISTEN_SYNC = { ...bind, ...SYNC };
export const RPC_SERVER_SYNC = {
  capacity: bytes,
  align: u32,
  mode: permissions,
  allowUids: uids,
  handshakeTimeout: milliseconds,
  wait: policy,
  maxClients: u32,
  maxInFlight: u32,
  maxBytes: bytes,
};
export const RPC_SERVER = { ...RPC_SERVER_SYNC, signal };
export const RPC_METHOD = { name: text };
const newRegion = { persistent: flag, discard: flag, allowDisk: flag, mode: permissions, wait: policy, ...placement };
export const REGION = { ...newRegion, signal };
export const REGION_SYNC = newRegion;
const oldRegion = { readOnly: flag, wait: policy, ...mapped };
export const REGION_OPEN = { ...oldRegion, ...WAIT };
export const REGION_OPEN_SYNC = { ...oldRegion, ...SYNC };
const count = whole(0x7fff_ffff, '');
export const SEGMENTS_CLEAN = { directory: text, undelivered: flag, dryRun: flag };
export const REGION_WAIT = { since: count, ...WAIT };
export const REGION_WAIT_SYNC = { since: count, ...SYNC };

/** Reads the options of the call `what`, each once. What is not in the shape is a mistake. */
export function read<S extends Shape>(what: string, shape: S, given: unknown): Read<S> {
  const found: Record<string, unknown> = {};
  if (given === undefined) {
    return found as Read<S>;
  }
  checkNames(what, given, Object.keys(shape));
  for (const name in shape) {
    const value = (given as Record<string, unknown>)[name];
    if (value !== undefined) {
      found[name] = checked(what, `the option '${name}'`, shape[name]!, value);
    }
  }
  return found as Read<S>;
}

/** Throws if an option was given that has no meaning for what `what` opens: `discard` is `create`'s alone. */
export function refuseIdle(
  what: string,
  given: { discard?: boolean; persistent?: boolean; mode?: number },
  creates: boolean,
): void {
  if (given.discard) {
    throw invalid(`${what}: the option 'discard' applies to create only; what is there is taken as it is`);
  }
  for (const name of ['persistent', 'mode'] as const) {
    if (!creates && given[name] !== undefined && given[name] !== false) {
      throw invalid(`${what}: the option '${name}' applies to what is made; say it with create or openOrCreate`);
    }
  }
}

/** Throws if the options are no object, or one of them is not in `names`. Cheap: for calls that are made often. */
export function checkNames(what: string, given: unknown, names: readonly string[]): asserts given is object {
  if (typeof given !== 'object' || given === null) {
    throw mistake(`${what}: the options are ${shown(given)}, expected an object`);
  }
  for (const name in given) {
    // What is inherited is no mistake.
    if (!names.includes(name) && Object.hasOwn(given, name)) {
      throw mistake(`${what}: there is no option '${name}', expected ${names.join(', ')}`);
    }
  }
}

/** A name of a ring, bus or region; what a good one is, the native side decides. */
export function nameOf(what: string, name: unknown): string {
  if (typeof name !== 'string') {
    throw invalid(`${what}: the name is ${shown(name)}, expected a string`);
  }
  if (name.includes('\0')) {
    throw invalid(`${what}: the name ${shown(name)} has a NUL character in it`);
  }
  return name;
}

/** Bytes of a ring. */
export function capacityOf(what: string, value: unknown): number {
  return checked(what, 'the capacity', ringBytes, value);
}

/** The number of an open descriptor. */
export function fdOf(what: string, value: unknown): number {
  return checked(what, 'the descriptor', count, value);
}

/** A number of bytes from 0 on. */
export function bytesOf(what: string, argument: string, value: unknown): number {
  return checked(what, `the ${argument}`, bytes, value);
}

/** A length of time. */
export function millisecondsOf(what: string, argument: string, value: unknown): number {
  return checked(what, `the ${argument}`, milliseconds, value);
}

function checked<T>(what: string, which: string, reader: Reader<T>, value: unknown): T {
  const result = reader(value);
  if (result instanceof Expected) {
    throw new RamwayError(result.kind, `${what}: ${which} is ${shown(value)}, expected ${result.text}`);
  }
  return result;
}

function isSignal(value: unknown): value is AbortSignal {
  // Not instanceof: signals of other realms, and of packages that bring their own, will do.
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as AbortSignal).aborted === 'boolean' &&
    typeof (value as AbortSignal).addEventListener === 'function'
  );
}

function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'symbol':
      return 'a symbol';
    case 'object':
      if (value === null) {
        return 'null';
      }
      return Array.isArray(value)
        ? `[${value.slice(0, 4).map(shown).join(', ')}${value.length > 4 ? ', …' : ''}]`
        : 'an object';
    default:
      return String(value);
  }
}
