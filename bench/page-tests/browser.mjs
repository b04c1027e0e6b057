// A headless Chromium of the system, which may reach nothing.
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

function find() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"])
    try {
      return execFileSync("sh", ["-c", 'command -v "$0"', name], { encoding: "utf8" }).trim();
    } catch { /* the next one */ }
  throw new Error("there is no chromium on the PATH (CHROMIUM=/path/to/it names one)");
}

export function launch() {
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--font-render-hinting=none"];
  return chromium.launch({ executablePath: find(), args });
}
