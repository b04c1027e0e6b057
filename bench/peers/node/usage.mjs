/** Where a measuring process runs, and what it uses during a burst. */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** @typedef {{cpu_ns: number, peak_rss: number, shared: number, context_switches: number}} Used */

/**
 * Puts this process where it belongs: all of its threads, and what it starts from now on. Node.js has no call for it.
 * @param {number | string | null} cpu One of them, or a list as taskset has it.
 * @param {boolean} realtime
 */
export function settle(cpu, realtime) {
  if (cpu !== null) {
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(cpu), String(process.pid)]);
  }
  if (realtime) {
    throw new Error('a process of Node.js cannot lock its memory');
  }
}

/** Sets the peak of the resident memory back, where the kernel lets it be. */
export function forgetPeak() {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // Then it is the peak since the beginning.
  }
}

/** The counters at the beginning of a burst. */
export class Usage {
  #cpu = process.cpuUsage();
  #switches = contextSwitches();

  /**
   * What was used since.
   * @returns {Used}
   */
  end() {
    const { user, system } = process.cpuUsage(this.#cpu);
    const context_switches = contextSwitches() - this.#switches;
    const status = readFileSync('/proc/self/status', 'latin1');
    const kibibytes = (/** @type {string} */ name) => Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1] ?? 0);
    return {
      cpu_ns: (user + system) * 1000,
      peak_rss: kibibytes('VmHWM') * 1024,
      shared: kibibytes('RssShmem') * 1024,
      context_switches,
    };
  }
}

function contextSwitches() {
  const used = process.resourceUsage();
  return used.voluntaryContextSwitches + used.involuntaryContextSwitches;
}
