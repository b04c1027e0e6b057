// The types as a CommonJS program has them.
import ramway = require('ramway');

import { Ring, type Sender } from 'ramway';

export async function send(name: string): Promise<void> {
  const tx: Sender = await Ring.open(name).sender({ timeout: 10 });
  const other: ramway.Sender = tx;
  other.trySend('text');
  await tx.end();
}
