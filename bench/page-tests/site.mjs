// The site in a browser: on a phone and on a desk, light and dark, nothing is wider than the window, what is written can be read, and the
// search finds. The references, which other tools have made, and the benchmark's page only have to fit and to load.
//   node site.mjs SITE [PICTURES]     SITE: what `make site` made; PICTURES: a folder for pictures of what was looked at
import assert from "node:assert/strict";
import { createReadStream, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { launch } from "./browser.mjs";

const [site, pictures] = process.argv.slice(2);
const PAGES = ["index.html", "start/python", "guides/rpc", "calls", "ABI", "benchmarks", "adr/0029-rpc", "SYSCALLS", "porting", "guides/one-to-many"]
  .map((page) => page.endsWith(".html") ? page : `docs/${page}.html`)
  .concat("capi/index.html", "bindings/java/index.html", "docs/reference.html", "SECURITY.html", "CONTRIBUTING.html",
    "docs/guides/bridge.html", "bindings/csharp/index.html", "docs/adr/index.html");
// Where their tools were there when the site was made.
const MADE = ["c/index", "csharp/index", "go/index", "java/index", "javascript/index", "kotlin/index", "python/ramway", "rust/ramway/index"]
  .map((page) => `api/${page}.html`).concat("bench/run/index.html", "docs/benchmarks/rpc.html").filter((page) => existsSync(join(site, page)));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["color-contrast", "link-in-text-block", "image-alt", "document-title", "html-has-lang"];
const SIZES = [["phone", 390, 844], ["desk", 1400, 900]];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2" };

// The search needs a server: a page from a file may not load its index everywhere.
const server = createServer((request, response) => {
  const file = join(site, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
  const found = statSync(file, { throwIfNoEntry: false })?.isFile();
  response.writeHead(found ? 200 : 404, { "content-type": TYPES[extname(file)] ?? "text/plain" });
  if (found) createReadStream(file).pipe(response);
  else response.end();
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;
if (pictures) mkdirSync(pictures, { recursive: true });

let passed = 0, failed = 0;
async function test(name, body) {
  try {
    await body();
    passed++;
  } catch (error) {
    failed++;
    console.log(`${name}: ${error.message}`);
  }
}

const browser = await launch();
for (const [size, width, height] of SIZES)
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(240_000); // a machine that has other work
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    // What is aborted was still asked for, an icon, when the next page was.
    page.on("requestfailed", (request) => request.failure().errorText === "net::ERR_ABORTED"
      || errors.push(`${request.url()}: ${request.failure().errorText}`));
    page.on("response", (response) => response.status() < 400 || errors.push(`${response.url()}: ${response.status()}`));
    for (const path of [...PAGES, ...MADE])
      await test(`${path}, ${size}, ${colorScheme}`, async () => {
        errors.length = 0;
        await page.goto(address + path);
        const seen = await page.evaluate(() => ({
          width: document.documentElement.scrollWidth,
          // Only a table and a block of code may be scrolled sideways, each within its own box.
          wide: [...document.querySelectorAll("main *")].filter((node) => !node.closest("pre, .table-wrapper, .mdbook-help-container")
            && node.getBoundingClientRect().right > innerWidth + 1).map((node) => `${node.tagName} "${node.textContent.slice(0, 40)}"`),
          background: getComputedStyle(document.documentElement).backgroundColor,
        }));
        if (pictures) await page.screenshot({ path: join(pictures, `${path.replaceAll("/", "-")}.${size}.${colorScheme}.png`) });
        assert.deepEqual(MADE.includes(path) ? [] : seen.wide, [], "wider than the window");
        assert.ok(seen.width <= width, `the page is ${seen.width} pixels wide in a window of ${width}`);
        assert.deepEqual(errors, []);
        if (MADE.includes(path)) return;
        const [red] = seen.background.match(/\d+/g).map(Number);
        assert.ok(colorScheme === "dark" ? red < 80 : red > 200, `the background is ${seen.background}`);
        // The colours are the same on both; only here the list of chapters is in sight.
        if (size !== "desk") return;
        await page.evaluate(axe);
        const { violations } = await page.evaluate((rules) => axe.run(document, { resultTypes: ["violations"], runOnly: rules }), RULES);
        assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 160)]), []);
      });
    await test(`search, ${size}, ${colorScheme}`, async () => {
      await page.goto(`${address}index.html?search=lossy`);
      const results = page.locator("#mdbook-searchresults li");
      await results.first().waitFor();
      assert.match(await results.allTextContents().then((all) => all.join()), /lossy/i);
    });
    await context.close();
  }
await browser.close();
server.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
