// Every program of the JavaScript guide is run, in every runtime that is there: those of one section at the same time, as
// files beside each other.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { find } from '../../../bindings/node/test/runtimes.mjs';
import { LONG, Program, place } from '../processes.mjs';

const guide = new URL('../../../docs/guides/javascript.md', import.meta.url);
const binding = fileURLToPath(new URL('../../../bindings/node', import.meta.url));
const python = process.env.RAMWAY_EXAMPLES_PYTHON;

/**
 * What stands below one heading: programs by their file names, and what each prints.
 * @typedef {{ title: string, programs: Map<string, { text: string, how: string }>, printed: Map<string, string> }} Section
 */

/** @returns {Section[]} */
function sections(/** @type {string} */ text) {
  /** @type {Section} */
  let section = { title: '', programs: new Map(), printed: new Map() };
  const found = [section];
  let last = '';
  for (const [, title, language, block] of text.matchAll(/^##+ ([^\n]*)$|^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) {
      section = { title, programs: new Map(), printed: new Map() };
      found.push(section);
    } else if (language === 'js' || language === 'python') {
      // What is in parentheses: who starts it, or how it ends.
      const named = /^(?:\/\/|#) ([\w-]+\.(?:mjs|py))(?: \((.*)\))?\n/.exec(block);
      assert.ok(named, `a program without a file's name: ${block}`);
      last = named[1];
      section.programs.set(last, { text: block, how: named[2] ?? '' });
    } else if (language === 'text') {
      section.printed.set(last, block);
    }
  }
  return found.filter(({ programs }) => programs.size > 0);
}

const cases = sections(readFileSync(guide, 'utf8'));
/** A runtime's program, and what stands before a file's name. @type {[string, string[]][]} */
const runtimes = [
  ['node', []],
  ['bun', []],
  // The permissions that the guide names.
  ['deno', ['run', '--allow-ffi', '--allow-env', '--allow-read', '--no-lock', '--no-prompt', '--quiet']],
];

for (const [runtime, words] of runtimes) {
  const path = find(/** @type {'node'} */ (runtime));
  for (const { title, programs, printed } of cases) {
    test(`guide, ${runtime}: ${title}`, {
      timeout: 2 * LONG,
      skip: path ? false : `there is no ${runtime}`,
    }, async (t) => {
      const names = place(t);
      const directory = mkdtempSync(join(tmpdir(), 'ramway-guide-'));
      t.after(() => rmSync(directory, { recursive: true }));
      mkdirSync(join(directory, 'node_modules'));
      symlinkSync(binding, join(directory, 'node_modules', 'ramway'));
      writeFileSync(join(directory, 'package.json'), '{"dependencies":{"ramway":"*"}}');
      for (const [name, { text }] of programs) writeFileSync(join(directory, name), text);
      const running = [];
      for (const [name, { how }] of programs) {
        if (how.startsWith('started by')) continue;
        const command = name.endsWith('.py') ? [python ?? 'python3', name] : [path ?? runtime, ...words, name];
        running.push({ name, how, program: new Program(t, command, { RAMWAY_DIR: names, NO_COLOR: '1' }, directory) });
        await sleep(100);
      }
      // One that fails may be why another one waits: all are told of.
      const ends = await Promise.all(running.map(({ program }) => program.ended));
      const said = running.map(({ name, program }, index) =>
        [`${name} ended with ${ends[index]}`, ...program.lines, program.complaints].join('\n'),
      );
      for (const [index, { name, how, program }] of running.entries()) {
        assert.equal(ends[index], how === 'is killed' ? 'SIGKILL' : 0, said.join('\n'));
        assert.equal(program.complaints, '', name);
        if (printed.has(name)) assert.equal(`${program.lines.join('\n')}\n`, printed.get(name), name);
      }
    });
  }
}
