// How a listener's connections reach the calls that wait for them.
import { clearTimeout, setTimeout } from 'node:timers';
import type { NativeBus, NativeListener } from '../../native.cjs';
import { call, RamwayError, wrap } from '../errors.js';
import { ACCEPT_PAUSE_MS } from '../facts.js';
import { Idle } from '../waiting/idle.js';
import { TIMER_MAX, timedOut, Waiter, type WaitOptions } from '../waiting/waiting.js';
import type { Bus } from './bus.js';

/** A wait for a connection. */
class Acceptor extends Waiter<Bus> {
  constructor(
    /** It polls once: its wait is over when the listener has found nothing. */
    readonly once: boolean,
    ...wait: ConstructorParameters<typeof Waiter<Bus>>
  ) {
    super(...wait);
  }
}

/** Where connections go that nobody waits for. */
interface Sink {
  accepted(bus: Bus): void;
  failed(error: unknown): void;
}

/** What a time-out says of the listener at `name`. */
export function nobody(name: string): string {
  return `nobody connected to the listener '${name}'`;
}

/** The accepting of one listener: one thread of the native half at a time, while a connection is wanted. */
export class Accepting {
  private readonly waiters: Acceptor[] = [];
  /** Connections that came when the call that had waited for them was over. */
  private readonly kept: Bus[] = [];
  private sink: Sink | null = null;
  private running: Promise<void> | null = null;
  private readonly idle: Idle;
  private held = true;
  /** Ends the wait for the descriptor. */
  private rouse: (() => void) | null = null;
  closed = false;

  constructor(
    private readonly native: NativeListener,
    private readonly name: string,
    private readonly make: (native: NativeBus) => Bus,
  ) {
    // Not asked once it is closed.
    const fd = native.fd;
    this.idle = new Idle({
      poll: () => false,
      arm: () => native.ready(),
      descriptor: () => fd,
      spin: 0,
    });
  }

  /** The next connection. The options have been checked. */
  accept(options: WaitOptions): Promise<Bus> {
    return new Promise((resolve, reject) => {
      if (this.closed) throw this.detached();
      const kept = this.kept.shift();
      if (kept !== undefined) {
        resolve(kept);
        return;
      }
      const once = options.timeout === 0;
      const leave = () => {
        const at = this.waiters.indexOf(waiter);
        if (at !== -1) this.waiters.splice(at, 1);
      };
      const late = () => nobody(this.name);
      const waiter = new Acceptor(
        once,
        resolve,
        reject,
        once ? { signal: options.signal } : options,
        late,
        leave,
        (why) => {
          waiter.reject(why);
          this.restIfUnwanted();
        },
      );
      this.waiters.push(waiter);
      this.run();
    });
  }

  /** A connection that came and was not taken. */
  takeKept(): Bus | undefined {
    return this.kept.shift();
  }

  /** Accepts without calls from now on, or no longer. */
  pour(into: Sink | null): void {
    this.sink = into;
    if (into === null) {
      this.restIfUnwanted();
      return;
    }
    // Not here: the caller may add more listeners first.
    if (this.kept.length > 0) queueMicrotask(() => this.pourKept());
    this.run();
  }

  /** Whether waiting keeps the runtime running. */
  hold(yes: boolean): void {
    this.held = yes;
    this.idle.hold(yes);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.idle.forget();
    this.native.close();
    for (const bus of this.kept.splice(0)) bus.close();
    for (const waiter of this.waiters.splice(0)) waiter.reject(this.detached());
    this.rouse?.();
  }

  /** Resolves once the name is free again, after `close`. */
  async settled(): Promise<void> {
    await this.running;
  }

  detached(): RamwayError {
    return new RamwayError('Detached', `the listener '${this.name}' is closed`);
  }

  private run(): void {
    if (this.running === null) {
      this.running = this.work();
    } else if (this.waiters.some((waiter) => waiter.once)) {
      this.rouse?.();
    }
  }

  private async work(): Promise<void> {
    while (!this.closed && this.isWanted()) {
      const polls = this.waiters.filter((waiter) => waiter.once);
      let bus: Bus | null;
      try {
        const native = await this.native.accept();
        bus = native === null ? null : this.make(native);
      } catch (error) {
        await this.fail(wrap(error));
        continue;
      }
      if (bus !== null) this.deliver(bus);
      if (bus !== null || this.closed) continue;
      for (const waiter of polls) if (this.waiters.includes(waiter)) waiter.reject(timedOut(nobody(this.name)));
      // A poll that was asked for meanwhile comes before any sleep.
      if (!this.waiters.some((waiter) => waiter.once)) await this.readable();
    }
    this.running = null;
  }

  private isWanted(): boolean {
    return this.waiters.length > 0 || this.sink !== null;
  }

  private restIfUnwanted(): void {
    if (!this.isWanted()) this.rouse?.();
  }

  /** To the first wait; without one it is kept. */
  deliver(bus: Bus): void {
    const waiter = this.waiters.shift();
    if (this.closed) bus.close();
    else if (waiter !== undefined) waiter.resolve(bus);
    else if (this.sink !== null) this.sink.accepted(bus);
    else this.kept.push(bus);
  }

  private async fail(error: unknown): Promise<void> {
    const waiter = this.waiters.shift();
    if (waiter !== undefined) {
      waiter.reject(error);
      return;
    }
    if (this.closed) return;
    this.sink?.failed(error);
    await this.sleep(ACCEPT_PAUSE_MS, () => {});
  }

  private pourKept(): void {
    while (this.sink !== null && this.kept.length > 0) this.sink.accepted(this.kept.shift()!);
  }

  /** Until the descriptor is readable, or a connector's time is up. */
  private async readable(): Promise<void> {
    const due = call(() => this.native.dueIn);
    // A millisecond more, for a timer that comes early.
    await this.sleep(due === null ? Infinity : due + 1, (done) => this.idle.wait(done));
    this.idle.cancel();
  }

  private sleep(milliseconds: number, begin: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const timer = milliseconds > TIMER_MAX ? undefined : setTimeout(() => this.rouse?.(), milliseconds);
      if (!this.held) timer?.unref();
      this.rouse = () => {
        this.rouse = null;
        clearTimeout(timer);
        resolve();
      };
      begin(this.rouse);
    });
  }
}
