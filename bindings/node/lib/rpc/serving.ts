// The serving of one RPC server in the event loop: calls are taken many at a time when its descriptor says so, handlers run,
// and what they have answered crosses to the native half together.
import { availableParallelism } from 'node:os';
import { clearTimeout, setTimeout } from 'node:timers';
import type { NativeRpcServer } from '../../native.cjs';
import { call } from '../errors.js';
import { ITERATION_SPIN_MS } from '../facts.js';
import type { WaitPolicy } from '../options.js';
import { Idle } from '../waiting/idle.js';
import { isOver, over, workOf } from '../waiting/iteration.js';
import { TIMER_MAX } from '../waiting/waiting.js';
import { type Arrived, Crossing, FAILED, NONE } from './crossing.js';
import { RpcRequest } from './request.js';
import { type Owner, type RpcHandler, type RpcStreamHandler, type Running, run, runStream } from './running.js';

// On one processor whoever is waited for would wait too.
const SPINS = { spin: Infinity, hybrid: availableParallelism() > 1 ? ITERATION_SPIN_MS : 0, block: 0 };

/** What runs a method. */
type Handler = { one: RpcHandler } | { stream: RpcStreamHandler };

export class Serving implements Owner {
  readonly crossing: Crossing;
  private readonly handlers = new Map<number, Handler>();
  /** Calls whose handlers have not ended, by their numbers. */
  private readonly calls = new Map<number, Running>();
  private readonly idle: Idle;
  private state: 'new' | 'serves' | 'closed' = 'new';
  /** `go` runs: handlers are called by it. */
  private active = false;
  /** The loop's iteration was over before all was done: the rest is for the next one. */
  private late = false;
  private flushing = false;
  /** -1: it was not asked for. */
  private descriptor = -1;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private timerAt = Infinity;
  private readonly ends: { resolve(): void; reject(reason: unknown): void }[] = [];

  constructor(
    private readonly native: NativeRpcServer,
    policy: WaitPolicy,
  ) {
    this.crossing = new Crossing(native);
    this.idle = new Idle({
      poll: () => native.ready(),
      arm: () => native.ready(),
      descriptor: () => this.descriptor,
      spin: SPINS[policy],
    });
  }

  get closed(): boolean {
    return this.state === 'closed';
  }

  add(method: number, name: string | undefined, handler: Handler): void {
    call(() => this.native.add(method, name ?? null, 'stream' in handler));
    this.handlers.set(method, handler);
  }

  /** Serves, from the next step on, until the server is closed: then the promise resolves. Not of one that is closed. */
  serve(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.ends.push({ resolve, reject });
      if (this.state !== 'new') return;
      this.state = 'serves';
      // Not here: the caller may register handlers first.
      this.flush();
    });
  }

  /** Whether serving keeps the runtime running. */
  hold(yes: boolean): void {
    this.idle.hold(yes);
  }

  /** Has it shut down. */
  shutdown(limit: number): Promise<void> {
    this.native.shutdown(limit);
    const ended = this.serve();
    this.flush();
    return ended;
  }

  /** Cancels what runs, and closes. */
  close(failure?: { reason: unknown }): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    clearTimeout(this.timer);
    this.crossing.close();
    this.idle.forget();
    this.native.close();
    for (const running of [...this.calls.values()]) running.change(false, true);
    this.calls.clear();
    for (const end of this.ends.splice(0)) {
      if (failure === undefined) end.resolve();
      else end.reject(failure.reason);
    }
  }

  /** There are answers: they cross once what runs now is done. */
  flush(): void {
    if (this.flushing || this.active || this.state !== 'serves') return;
    this.flushing = true;
    queueMicrotask(this.flushed);
  }

  ended(token: number): void {
    this.calls.delete(token);
  }

  private readonly flushed = () => {
    this.flushing = false;
    this.go();
  };

  /** Does what there is to do, then waits. */
  private readonly go = (): void => {
    if (this.active || this.state !== 'serves') return;
    this.active = true;
    try {
      // Without one it cannot be waited for: there may be no more of them.
      if (this.descriptor === -1) this.descriptor = call(() => this.native.fd);
      this.idle.cancel();
      this.work();
    } catch (error) {
      this.close({ reason: error });
    } finally {
      this.active = false;
    }
  };

  private work(): void {
    const { crossing } = this;
    for (;;) {
      if (this.late) {
        if (crossing.answers > 0) crossing.cross(false);
        if (crossing.isOver) break;
        return;
      }
      if (crossing.has) {
        const arrived = crossing.read(this.changed);
        if (arrived !== null) this.begin(arrived);
        if (this.closed) return;
        if (isOver(workOf(arrived?.body.length ?? 0))) this.goOnLater();
        continue;
      }
      const came = crossing.cross(true);
      if (crossing.isOver) break;
      if (!came && crossing.answers === 0) {
        this.rest();
        return;
      }
    }
    this.close();
  }

  private begin(arrived: Arrived): void {
    const { token } = arrived;
    // What is registered with the native half is here.
    const handler = this.handlers.get(arrived.method)!;
    if (arrived.deadline !== Infinity && performance.now() >= arrived.deadline) {
      // It has waited behind others that came with it. Its caller is told that it was cancelled.
      this.crossing.say(token, FAILED, 0, NONE, 'the time was over before the call was begun');
      return;
    }
    const request = new RpcRequest(arrived);
    const running =
      'one' in handler ? run(this, token, request, handler.one) : runStream(this, token, request, handler.stream);
    if (running === null) return;
    if (this.closed) running.change(false, true);
    else this.calls.set(token, running);
  }

  private readonly changed = (token: number, room: boolean, stopped: boolean): void => {
    this.calls.get(token)?.change(room, stopped);
  };

  private goOnLater(): void {
    this.late = true;
    void over().then(() => {
      this.late = false;
      this.go();
    });
  }

  /** Until the descriptor is readable, or something is due. */
  private rest(): void {
    this.idle.wait(this.go);
    const { due } = this.crossing;
    if (due > TIMER_MAX) return;
    const at = performance.now() + due;
    if (this.timerAt <= at) return;
    clearTimeout(this.timer);
    this.timerAt = at;
    // What keeps the runtime running is the wait above.
    this.timer = setTimeout(this.expired, Math.ceil(due)).unref();
  }

  private readonly expired = () => {
    this.timerAt = Infinity;
    this.go();
  };
}
