// A child that was handed rings without a name, as descriptors from 3 on.
import { Ring } from '../../index.mjs';

const way = process.argv[2];
if (way === 'echo') {
  const rx = await Ring.fromFd(3).receiver();
  const tx = await Ring.fromFd(4).sender();
  for await (const message of rx) await tx.send(message.data);
  await tx.end();
} else {
  const tx = await Ring.fromFd(3).sender({ timeout: 20_000 });
  if (way === 'resume') {
    await tx.send(`from ${Number(tx.lastTag) + 1}`);
    await tx.end();
  } else {
    for (let n = 0; n < 3; n++) await tx.send(String(n), { tag: n });
    // Until it is killed.
    setInterval(() => {}, 1000);
  }
}
