// The README's picture of a page: the machine, one table and two charts, 1200 pixels wide.
//   node screenshot.mjs PAGE.html OUT.png
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const LIMIT = 400 * 1024;
const [html, out] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, colorScheme: "light" });
await page.goto(pathToFileURL(html).href);
// The rest is taken away, not changed: what is left is the page's own.
const found = await page.evaluate(() => {
  const group = document.querySelector("section.group");
  const keep = [document.getElementById("machine"), document.getElementById("overview"), group];
  for (const section of document.querySelectorAll("main > section")) if (!keep.includes(section)) section.hidden = true;
  for (const chart of document.querySelectorAll("#overview .chart:not([data-chart=throughput])")) chart.hidden = true;
  for (const node of document.querySelectorAll("aside, #theme")) node.hidden = true;
  document.querySelector(".layout").style.display = "block";
  document.querySelector("main").style.paddingBottom = "0";
  for (const section of keep) section.style.marginBottom = "1.5rem";
  for (const row of [...group.querySelectorAll("table.figures tbody tr")].slice(14)) row.hidden = true;
  dispatchEvent(new Event("resize"));
  return document.querySelectorAll("#overview canvas").length > 0 && group.querySelector("canvas") !== null;
});
await page.waitForTimeout(500);
await page.screenshot({ path: out, fullPage: true });
await browser.close();
const { size } = statSync(out);
console.log(`${out}: ${Math.ceil(size / 1024)} KiB${found ? "" : "; the run has no one-way groups, or no curve in its first group"}`);
if (size > LIMIT || !found) process.exitCode = 1;
