// JavaScript's agent: main.js COMMAND --flag value ...
//
// ../README.md says what each command and flag means.

import { BadMessage, leaveInput, named, parse, readLine, say, UsageError } from './common.js';
import { read, show } from './look.js';
import { drain, flood } from './speed.js';
import { consume, die, produce } from './stream.js';
import { echo, ping } from './talk.js';
import { tensors } from './tensor.js';

const commands = { produce, consume, die, echo, ping, read, show, tensors, flood, drain };

/** Plays one command; gives the exit status. */
async function play(argv) {
  let args;
  try {
    args = parse(argv);
    if (args.cpu !== undefined) {
      const { execFileSync } = await import('node:child_process');
      // All threads that there are; those to come inherit it.
      execFileSync('taskset', ['-acp', args.cpu, process.pid], { stdio: 'ignore' });
    }
    await commands[args.command](args);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(error.message);
      return 2;
    }
    if (error instanceof BadMessage) {
      say(`bad seq=${error.seq} text=${error.message}`);
      return 1;
    }
    say(`error ${named(error)} text=${error.message}`);
    // A vector may well be what cannot be opened.
    return args?.command === 'read' ? 0 : 1;
  }
}

async function serve() {
  for (let line = await readLine(); line !== undefined; line = await readLine()) {
    await play(line.split(' '));
    say('over');
  }
  return 0;
}

const argv = process.argv.slice(2);
// Not process.exit(): whatever is closed lets the event loop end by itself.
process.exitCode = argv[0] === 'serve' ? await serve() : await play(argv);
leaveInput();
