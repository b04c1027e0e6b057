// A headless Chromium of the system, for the tests.
import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';

function find() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ['chromium', 'chromium-browser', 'google-chrome'])
    try {
      return execFileSync('sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8' }).trim();
    } catch {
      // The next one.
    }
  throw new Error('there is no chromium on the PATH (CHROMIUM=/path/to/it names one)');
}

/** Nothing is asked of the network but what the page asks of its server. */
export function launch() {
  const off = ['gpu', 'quic', 'background-networking', 'component-update', 'sync'].map((what) => `--disable-${what}`);
  // A page that is not in front is drawn like one that is: several are open at once.
  off.push('--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows');
  const args = ['--no-sandbox', '--no-first-run', '--font-render-hinting=none', ...off];
  return chromium.launch({ executablePath: find(), args });
}
