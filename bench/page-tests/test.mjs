// Opens the pages that `make test` has made in a real browser.   node test.mjs DIRECTORY
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const directory = process.argv[2];
const url = (name) => pathToFileURL(join(directory, `${name}.html`)).href;
const read = (name) => JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8"));
const whole = read("whole"), report = read("small"), placed = read("placed");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
let passed = 0, failed = 0;

// One page in a context of its own; whatever the console says or the network is asked for is a failure.
async function test(name, options, body) {
  const { file = "small", ...context } = options;
  const opened = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...context });
  const said = [], began = performance.now();
  try {
    const page = await opened.newPage();
    page.setDefaultTimeout(20000);
    page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`error: ${error.message}`));
    page.on("request", (request) => { if (!/^(file|data):/.test(request.url()) || (request.url().startsWith("file:") && request.url().split("#")[0] !== url(file))) said.push(`request: ${request.url()}`); });
    page.on("dialog", (dialog) => { said.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    await page.goto(url(file));
    await body(page);
    assert.deepEqual(said, []);
    passed++;
    console.log(`ok      ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n${error.stack}\n${said.join("\n")}`);
  } finally {
    await opened.close();
  }
}

const table = (page, group) => page.locator(`[id="group-${group}"] table.figures`);
// The mechanisms of a table's rows that are shown, from top to bottom.
const order = (page, group) => table(page, group).locator("tbody tr").evaluateAll((rows) => rows.filter((row) => row.offsetParent).map((row) => row.dataset.mechanism));
// What the JSON says the order by a figure must be: what lacks it last, equals as they were.
function expected(before, group, figure, descending) {
  const value = (name) => { const row = report.rows.find((row) => row.group === group && row.name === name); return row.figures ? figure(row.figures) : null; };
  return [...before].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return x === null || y === null ? (x === null) - (y === null) : descending ? y - x : x - y;
  });
}
// Pixels of a canvas that are not its background, by colour.
const colours = (chart) => chart.locator("canvas").first().evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Map();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) { const key = `${data[i] >> 4},${data[i + 1] >> 4},${data[i + 2] >> 4}`; seen.set(key, (seen.get(key) ?? 0) + 1); }
  return [...seen].filter(([, count]) => count > 30).length;
});
// What a change asked for has been drawn, however slow the machine is.
const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const pixels = (chart) => chart.locator("canvas").first().evaluate((canvas) => canvas.toDataURL());

await test("every group has its table and its rows", { file: "whole" }, async (page) => {
  assert.equal(await page.locator("html").getAttribute("lang"), "en");
  assert.match(await page.title(), /^Ramway benchmark, \d{4}-/);
  for (const { id } of whole.groups) assert.deepEqual(new Set(await order(page, id)), new Set(whole.rows.filter((row) => row.group === id).map((row) => row.name)), id);
  assert.deepEqual(await order(page, "idle"), ["uds", "ring", "tachyon"]);
  assert.equal(await page.locator("table.bars tbody tr").count(), whole.bars.length);
  assert.match(await page.locator("#machine").innerText(), /6\.12\.0-amd64/);
  const failure = whole.rows.find((row) => row.failure);
  assert.match(await table(page, failure.group).locator("td.why").innerText(), new RegExp(failure.failure.slice(0, 20).replace(/[()]/g, ".")));
});

await test("every chart is drawn, in several colours", { file: "whole" }, async (page) => {
  const drawn = whole.groups.filter((group) => group.test !== "idle");
  assert.equal(await page.locator("[data-chart=latency] canvas").count(), drawn.length);
  for (const kind of ["throughput", "floor", "ceiling", "access"]) assert.ok(await colours(page.locator(`[data-chart=${kind}]`)) >= 4, kind);
  for (const { id } of drawn) assert.ok(await colours(page.locator(`[data-group="${id}"]`)) >= 4, id);
});

await test("each placement has tables, charts and bars of its own", { file: "placed" }, async (page) => {
  assert.match(await page.locator("#machine").innerText(), /near, raw flag 110 ns .*far, raw flag 480 ns .*7 bursts repeated/);
  const [last] = placed.groups.slice(-1);
  for (const { id } of placed.groups) {
    const section = page.locator(`[id="group-${id}"]`), of = id === last.id ? ["near"] : ["near", "far"];
    const headings = (await section.locator("h3.placement").allInnerTexts()).map((text) => text.split(" ")[0].toLowerCase());
    assert.deepEqual(headings, of, id);
    assert.equal(await section.locator("table.figures").count(), of.length, id);
    assert.equal(await section.locator("[data-chart=latency] canvas").count(), of.length, id);
  }
  const cells = (n, name) => table(page, "rtt-spin").nth(n).locator(`tr[data-mechanism="${name}"] td`).evaluateAll((all) => all.map((cell) => Number(cell.dataset.v)));
  const near = await cells(0, "ring"), far = await cells(1, "ring");
  assert.ok(near.some((value, n) => value > 0 && Math.abs(far[n] / value - 4) < 0.01), `${near} ${far}`);
  // A row that was not measured in one of them is not in its table, nor in its chart.
  assert.deepEqual([(await cells(0, "tachyon")).length > 0, await cells(1, "tachyon")], [true, []]);
  assert.equal(await page.locator("[data-group=rtt-spin][data-placement=far] [data-name=tachyon]").count(), 0);
  const bars = await page.locator("table.bars tbody tr").allInnerTexts();
  assert.ok(bars[0].includes("(near)") && bars[1].includes("(far)") && !bars[2].includes("("), bars.join());
  for (const placement of ["near", "far"])
    for (const kind of ["throughput", "floor", "ceiling"]) assert.ok(await colours(page.locator(`[data-chart=${kind}][data-placement=${placement}]`)) >= 4, kind);
  assert.equal(await page.locator("[data-chart=access][data-placement=far] canvas").count(), 0);
  // Each has switches of its own.
  const chart = (placement) => page.locator(`[data-chart=throughput][data-placement=${placement}]`);
  const before = await pixels(chart("near"));
  await chart("far").getByLabel("MiB/s").check();
  await settled(page);
  assert.equal(await pixels(chart("near")), before);
  assert.ok(await chart("near").getByLabel("messages/s").isChecked());
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 160)]), []);
});

await test("a click on a heading sorts by number, a second one the other way round", {}, async (page) => {
  const group = "rtt-block", start = await order(page, group);
  const heading = (name) => table(page, group).locator("thead th", { has: page.getByRole("button", { name, exact: true }) });
  assert.equal(await heading("p50").getAttribute("aria-sort"), "ascending");
  await heading("p99").getByRole("button").click();
  let now = await order(page, group);
  assert.deepEqual(now, expected(start, group, (f) => f.ns.p99, false));
  assert.equal(await heading("p99").getAttribute("aria-sort"), "ascending");
  assert.equal(await heading("p50").getAttribute("aria-sort"), null);
  await heading("p99").getByRole("button").click();
  assert.deepEqual(await order(page, group), expected(now, group, (f) => f.ns.p99, true));
  assert.equal(await heading("p99").getAttribute("aria-sort"), "descending");
  // The row that failed stays last both ways.
  assert.equal((await order(page, group)).at(-1), "mqueue");
  now = await order(page, group);
  await heading("ops/s").getByRole("button").click();
  assert.deepEqual(await order(page, group), expected(now, group, (f) => f.ops_per_s, true));
  await heading("mechanism").getByRole("button").click();
  assert.deepEqual(await order(page, group), [...start].sort((a, b) => a.localeCompare(b, "en", { numeric: true })));
});

await test("the keyboard sorts", {}, async (page) => {
  const group = "one-way-32-each", start = await order(page, group);
  const button = table(page, group).getByRole("button", { name: "max", exact: true });
  await table(page, group).getByRole("button", { name: "p99.9", exact: true }).focus();
  await page.keyboard.press("Tab");
  assert.ok(await button.evaluate((node) => node === document.activeElement));
  await page.keyboard.press("Enter");
  const now = await order(page, group);
  assert.deepEqual(now, expected(start, group, (f) => f.ns.max, false));
  assert.notDeepEqual(now, start);
  await page.keyboard.press("Space");
  assert.deepEqual(await order(page, group), expected(now, group, (f) => f.ns.max, true));
  assert.ok(await button.evaluate((node) => node === document.activeElement));
});

await test("every column is there when asked for", {}, async (page) => {
  const heads = () => table(page, "rtt-spin").locator("thead th").evaluateAll((ths) => ths.filter((th) => th.offsetParent).map((th) => th.textContent));
  const few = await heads();
  await page.getByLabel("Show every column").check();
  const every = await heads();
  assert.ok(few.length < every.length);
  for (const name of ["mechanism", "kind", "copied", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "ops/s", "MiB/s", "CPU %", "peak RSS", "shared", "switches/op", "syscalls/op", "allocs/op", "stalls", "× floor"]) assert.ok(every.includes(name), name);
});

await test("the filter hides rows and series", {}, async (page) => {
  const chart = page.locator("[data-group=rtt-spin]"), before = await pixels(chart);
  await page.locator("#filter").getByLabel("tachyon", { exact: true }).uncheck();
  for (const { id } of report.groups) assert.ok(!(await order(page, id)).includes("tachyon"), id);
  assert.ok(!(await chart.locator("[data-name=tachyon]").isVisible()));
  await settled(page);
  assert.notEqual(await pixels(chart), before);
  await page.locator("#filter").getByRole("button", { name: "none" }).click();
  assert.deepEqual(await order(page, "rtt-spin"), []);
  await page.locator("#filter").getByRole("button", { name: "all" }).click();
  assert.ok((await order(page, "rtt-spin")).includes("tachyon"));
  await settled(page);
  assert.equal(await pixels(chart), before);
});

await test("a key of a chart takes its line away and brings it back", {}, async (page) => {
  const chart = page.locator("[data-group=rtt-spin]"), key = chart.locator("[data-name=ring]"), before = await pixels(chart);
  await key.focus();
  await page.keyboard.press("Enter");
  assert.equal(await key.getAttribute("aria-pressed"), "false");
  await settled(page);
  assert.notEqual(await pixels(chart), before);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await pixels(chart), before);
  await chart.getByRole("button", { name: /more$/ }).click();
  assert.ok(await chart.locator("[data-name=tonic]").isVisible());
});

await test("a chart tells its values to the mouse and to the keyboard", {}, async (page) => {
  const chart = page.locator("[data-group=rtt-spin]"), plot = chart.locator(".plot");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await chart.locator(".tip").waitFor({ state: "visible" });
  assert.match(await chart.locator(".tip").innerText(), /%[\s\S]*ring[\s\S]*ns/);
  await page.mouse.move(0, 0);
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const said = await page.locator("#live").textContent();
  assert.match(said, /^[\w-]+, 50 %: [\d.]+ (ns|µs)$/);
  await page.keyboard.press("ArrowDown");
  const name = (await page.locator("#live").textContent()).split(",")[0];
  assert.notEqual(name, said.split(",")[0]);
  const row = report.rows.find((row) => row.group === "rtt-spin" && row.name === name);
  assert.ok(Math.abs(parseFloat((await page.locator("#live").textContent()).split(": ")[1]) / row.figures.ns.p50 - 1) < 0.01);
  await page.keyboard.press("Escape");
  await chart.locator(".tip").waitFor({ state: "hidden" });
});

await test("throughput changes between messages and bytes, and between ways to publish", {}, async (page) => {
  const chart = page.locator("[data-chart=throughput]"), first = await pixels(chart);
  await chart.getByLabel("MiB/s").check();
  await settled(page);
  const second = await pixels(chart);
  assert.notEqual(second, first);
  await chart.getByLabel("in batches").check();
  await settled(page);
  assert.notEqual(await pixels(chart), second);
  assert.equal(await chart.locator("canvas").count(), 1);
  await chart.getByLabel("messages/s").check();
  await chart.getByLabel("one by one").check();
  await settled(page);
  assert.equal(await pixels(chart), first);
});

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
for (const [colorScheme, other] of [["light", "dark"], ["dark", "light"]])
  await test(`begins ${colorScheme} where the system is, and can be ${other}`, { colorScheme }, async (page) => {
    const chart = page.locator("[data-group=rtt-spin]"), before = await background(page), drawn = await pixels(chart);
    assert.equal(before === "rgb(255, 255, 255)", colorScheme === "light");
    await page.getByRole("button", { name: `Switch to the ${other} theme` }).click();
    assert.notEqual(await background(page), before);
    await settled(page);
    assert.notEqual(await pixels(chart), drawn);
    await page.getByRole("button", { name: `Switch to the ${colorScheme} theme` }).click();
    assert.equal(await background(page), before);
  });

await test("without a choice, the theme follows the system", { colorScheme: "light" }, async (page) => {
  const before = await background(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, before);
});

await test("nothing is wider than the window, from 320 pixels on", { viewport: { width: 320, height: 740 } }, async (page) => {
  const wide = () => page.evaluate(() => {
    scrollTo(9999, 0);
    const outside = [...document.querySelectorAll("body *")].filter((node) => node.offsetParent && node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(".scroll, .sr, .skip"));
    return [scrollX, document.documentElement.scrollWidth - innerWidth, ...outside.slice(0, 3).map((node) => node.outerHTML.slice(0, 120))];
  });
  assert.deepEqual(await wide(), [0, 0]);
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  await page.getByLabel("Show every column").check();
  for (const width of [320, 360, 768, 1024, 1280]) {
    await page.setViewportSize({ width, height: 740 });
    await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => Math.abs(plot.querySelector("canvas").getBoundingClientRect().width - plot.clientWidth) < 16));
    assert.deepEqual(await wide(), [0, 0], `${width} pixels`);
    // A table's last column can be reached all the same.
    const box = page.locator(".scroll", { has: page.locator("table.figures") }).first();
    assert.ok(await box.evaluate((node) => { node.scrollLeft = 9999; return node.lastChild.getBoundingClientRect().right <= innerWidth; }), `${width} pixels`);
  }
});

await test("without scripts the tables are all there", { javaScriptEnabled: false }, async (page) => {
  const rows = await page.locator("table.figures tbody tr").count();
  assert.equal(rows, report.rows.length);
  assert.ok(await table(page, "rtt-spin").locator("tbody tr").first().isVisible());
  assert.match(await page.locator("noscript").innerText(), /JavaScript/);
  assert.equal(await page.locator("button:visible").count(), 0);
  assert.ok(await table(page, "rtt-spin").locator("th", { hasText: "p99.99" }).isVisible());
});

await test("printed, it has no controls and a white ground", { colorScheme: "dark" }, async (page) => {
  await page.emulateMedia({ media: "print" });
  assert.ok(!(await page.locator("aside").isVisible()));
  assert.equal(await background(page), "rgb(255, 255, 255)");
});

for (const javaScriptEnabled of [true, false])
  await test(`hostile names stay names, ${javaScriptEnabled ? "with" : "without"} scripts`, { file: "hostile", javaScriptEnabled }, async (page) => {
    if (javaScriptEnabled) {
      assert.equal(await page.evaluate(() => window.broken), undefined);
      assert.equal(await page.locator("[data-chart=latency] canvas").count(), report.groups.length + 1);
      for (const button of await page.locator("section.group").last().locator("table.figures .sort").all()) if (await button.isVisible()) await button.click();
      const plot = page.locator("[data-chart=latency] .plot").last();
      await plot.focus();
      for (const key of ["ArrowRight", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
      assert.equal(await page.evaluate(() => window.broken), undefined);
      assert.equal(await page.evaluate(() => ({}).polluted ?? Object.keys(Object.prototype).length), 0);
    }
    const names = await page.locator("section.group").last().locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.dataset.mechanism)).catch(() => null);
    if (javaScriptEnabled) assert.ok(names.some((name) => name.includes("</script>")) && names.includes("__proto__"));
    assert.equal(await page.locator("img, iframe, object, section svg[onload]").count(), 0);
    assert.match(await page.locator("section.group").last().innerText(), /<b>title<\/b>/);
    assert.ok(await page.locator("#mechanisms").isVisible());
  });

// Lines and markers need a contrast of 3 to the ground, which axe does not look at.
for (const colorScheme of ["light", "dark"]) {
  await test(`the lines' colours stand out on the ${colorScheme} ground`, { colorScheme }, async (page) => {
    const [ground, ...lines] = await page.evaluate(() => ["--page", ...[0, 1, 2, 3, 4, 5, 6, 7].map((n) => `--c${n}`)].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
    const light = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    for (const line of lines) {
      const [a, b] = [light(ground), light(line)].sort((a, b) => b - a);
      assert.ok((a + 0.05) / (b + 0.05) >= 3, line);
    }
    assert.equal(new Set(lines).size, 8);
  });
}

for (const [colorScheme, width] of [["light", 1280], ["dark", 360]])
  await test(`axe finds nothing (${colorScheme}, ${width} pixels)`, { colorScheme, viewport: { width, height: 900 } }, async (page) => {
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map(({ id, impact, nodes }) => [id, impact, nodes.length, nodes[0].html.slice(0, 160), nodes[0].failureSummary]), []);
  });

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
