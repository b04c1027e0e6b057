// A reporter for node's test runner: one last line that counts, as every suite of this project ends.
export default async function* count(events) {
  const counts = {};
  for await (const { type, data } of events) {
    const [, word, number] =
      (type === 'test:diagnostic' &&
        data.nesting === 0 &&
        /^(pass|fail|cancelled|skipped|todo) (\d+)$/.exec(data.message)) ||
      [];
    if (word) counts[word] = Number(number);
  }
  const { pass = 0, fail = 0, cancelled = 0, skipped = 0, todo = 0 } = counts;
  yield `${pass} passed, ${fail + cancelled} failed, ${skipped + todo} skipped\n`;
}
