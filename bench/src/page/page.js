// What the page does besides being read: sorting, filtering, light and dark, and which charts there are.

const report = JSON.parse(document.getElementById("data").textContent);
const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Mechanisms in the order of the filter, what each looks like, and which are chosen.
const boxes = all("#filter input");
const order = boxes.map((box) => box.value);
const chosen = new Set(order);
const kinds = new Map(report.rows.map((row) => [row.name, row.kind]));
// The figures of a row in one of two placements, if it has them; without a placement those that it has.
const two = (report.placement?.seen ?? []).length > 1;
const placed = new Map(report.groups.map((group) => [group.id, (group.placements ?? []).map((seen) => seen.placement)]));
function figuresIn(row, placement) {
  if (!two || !placement || !row.figures) return row.figures;
  const of = placed.get(row.group);
  if (of.length > 1) return (row.apart ?? []).find((apart) => apart.placement === placement)?.figures ?? null;
  return of[0] === placement ? row.figures : null;
}
const rowsOf = (group, placement) => report.rows.filter((row) => row.group === group.id).map((row) => ({ ...row, figures: figuresIn(row, placement) })).filter((row) => row.figures);
const looks = dress();

// Numbers for people, as the tables have them.
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : size >= .0995 ? value.toFixed(2) : value.toPrecision(2);
}
function scaled(value, step, units, exact) {
  let n = 0;
  while (n < units.length - 1 && Math.abs(value) >= step * .9995) { value /= step; n++; }
  return `${exact ? digits(value) : Number(value.toPrecision(3))} ${units[n]}`;
}
const time = (ns, exact) => scaled(ns, 1000, ["ns", "µs", "ms", "s"], exact);
const rate = (v, exact) => scaled(v, 1000, ["/s", "k/s", "M/s", "G/s"], exact);
const mib = (v, exact) => scaled(v, 1024, ["MiB/s", "GiB/s", "TiB/s"], exact);
const size = (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB"]);
const times = (v, exact) => `${exact ? digits(v) : Number(v.toPrecision(3))} ×`;

// Which series a chart begins with: no more than can be told apart. Ramway's own, the floor and the ceiling, what
// everyone knows, and the best of the rest, in the order that is given (best first); a variant (ring-copy of ring) after
// all that is none.
function firstShown(names, also = []) {
  const variant = (name) => names.some((other) => name.startsWith(`${other}-`));
  const wanted = new Set([...also, "pipe", "uds"].filter((name) => names.includes(name)));
  for (const [kind, most] of [["ramway", 3], ["peer", 10], ["by-hand", 10], ["kernel", 10]]) {
    const of = names.filter((name) => kinds.get(name) === kind && !wanted.has(name));
    const ranked = [...of.filter((name) => !variant(name)), ...of.filter(variant)].slice(0, most);
    for (const name of ranked) if (wanted.size < 10) wanted.add(name);
  }
  return names.filter((name) => wanted.has(name));
}

// What each mechanism looks like. Those that the charts begin with most often get the looks that differ most.
function dress() {
  const shown = new Map(order.map((name) => [name, 0]));
  for (const group of report.groups) {
    const names = rowsOf(group).sort((a, b) => a.figures.ns.p50 - b.figures.ns.p50).map((row) => row.name);
    for (const name of firstShown(names, [group.floor, group.ceiling])) shown.set(name, shown.get(name) + 1);
  }
  const ranked = [...order].sort((a, b) => shown.get(b) - shown.get(a));
  const own = ranked.findIndex((name) => kinds.get(name) === "ramway");
  if (own > 0) ranked.unshift(...ranked.splice(own, 1));
  return new Map(order.map((name) => [name, look(ranked.indexOf(name))]));
}

// Percentiles as HdrHistogram draws them: each nine as far from the one before.
function latency(box) {
  const group = report.groups.find((group) => group.id === box.dataset.group);
  const rows = rowsOf(group, box.dataset.placement).filter((row) => row.figures.curve.length > 2).sort((a, b) => a.figures.ns.p50 - b.figures.ns.p50);
  if (!rows.length) return;
  // 100 % would lie at infinity: the longest is drawn where its share of the samples is.
  const place = (percentile, samples) => 100 / Math.max(100 - percentile, 100 / Math.max(samples, 2));
  const tables = rows.map(({ figures }) => {
    const points = new Map(figures.curve.filter(([, ns]) => ns > 0).map(([p, ns]) => [place(p, figures.ns.samples), ns]));
    return [...points].sort((a, b) => a[0] - b[0]);
  });
  const [xs, ...series] = uPlot.join(tables.map((points) => [points.map((p) => p[0]), points.map((p) => p[1])]));
  const last = xs[xs.length - 1];
  const ticks = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((x) => x <= last);
  const name = (x) => `${Number((100 - 100 / x).toFixed(Math.max(0, Math.round(Math.log10(x)) - 2) + (x % 10 === 0 || x < 3 ? 0 : 2)))} %`;
  const nearest = (list, x) => list.reduce((best, v, i) => (list[best] === undefined || Math.abs(Math.log(xs[i] / x)) < Math.abs(Math.log(xs[best] / x)) ? i : best), 0);
  const names = rows.map((row) => row.name);
  new Chart(box, {
    title: "Distribution", note: "How long the slowest ones take: to the right of 99 % is one in a hundred.", names, xs,
    series: new Map(names.map((name, i) => [name, series[i]])), xTicks: ticks, xRange: [1, last * 1.05], xLabel: name, xText: name,
    xTitle: "percentile", yText: time, yTitle: group.test === "one-way" ? "time per message" : "time", xLog: true, lines: true,
    shown: firstShown(names, [group.floor, group.ceiling]),
    stops: ticks.map((x) => nearest(xs, x)).concat(xs.length - 1).filter((i, n, list) => list.indexOf(i) === n),
    marked: (values) => {
      const have = [...values.keys()].filter((i) => values[i] != null);
      const marks = ticks.map((x) => have.reduce((a, b) => (Math.abs(Math.log(xs[a] / x)) <= Math.abs(Math.log(xs[b] / x)) ? a : b), have[0]));
      return [...new Set([...marks, have[have.length - 1]])];
    },
  });
}

// A set of radio buttons for a chart that can show several things.
function choice(title, name, options, value, change) {
  const set = element("fieldset", {}, element("legend", {}, title));
  for (const [key, text] of options) {
    const input = element("input", { type: "radio", name, value: key });
    input.checked = key === value;
    input.addEventListener("change", () => change(key));
    set.append(element("label", {}, input, element("span", {}, text)));
  }
  return set;
}

// Rate against message size, over the groups that differ in nothing else.
function throughput(box) {
  const placement = box.dataset.placement;
  const groups = (mode) => report.groups.filter((group) => group.test === "one-way" && group.mode === mode && rowsOf(group, placement).length && new RegExp(`^one-way-\\d+[KMG]?-${mode}$`).test(group.id)).sort((a, b) => a.size - b.size);
  const modes = [["each", "one by one"], ["batch", "in batches"]].filter(([mode]) => groups(mode).length > 1);
  if (!modes.length) return;
  let mode = modes[0][0], what = "ops", chart;
  const build = () => {
    const of = groups(mode), xs = of.map((group) => group.size);
    const rows = of.map((group) => rowsOf(group, placement));
    const value = { ops: (f) => f.ops_per_s, mib: (f) => f.mib_per_s }[what];
    const best = (name) => Math.max(...rows.map((list) => { const row = list.find((row) => row.name === name); return row ? value(row.figures) / Math.max(...list.map((row) => value(row.figures) ?? 0)) : 0; }));
    const names = order.filter((name) => best(name) > 0).sort((a, b) => best(b) - best(a));
    const series = new Map(names.map((name) => [name, rows.map((list) => { const row = list.find((row) => row.name === name); return row ? value(row.figures) : null; })]));
    const controls = element("div", { class: "switches" });
    const set = (change) => { change(); const old = chart; chart = build(); charts.splice(charts.indexOf(old), 1); chart.off = new Set([...old.off].filter((name) => names.includes(name))); chart.update(); };
    controls.append(choice("Show", `what${placement ?? ""}`, [["ops", "messages/s"], ["mib", "MiB/s"]], what, (key) => set(() => { what = key; })));
    if (modes.length > 1) controls.append(choice("Published", `mode${placement ?? ""}`, modes, mode, (key) => set(() => { mode = key; })));
    const made = new Chart(box, {
      title: "Throughput against message size", controls: [controls], names, xs, series, xTicks: xs, xRange: [xs[0] / 1.5, xs[xs.length - 1] * 1.5],
      xLabel: size, xText: size, xTitle: "message size", yText: what === "ops" ? rate : mib, yStep: what === "ops" ? 1000 : 1024, yTitle: what === "ops" ? "messages per second" : "payload",
      xLog: true, lines: true, shown: firstShown(names, of.flatMap((group) => [group.floor, group.ceiling])), stops: [...xs.keys()],
      marked: (values) => [...values.keys()].filter((i) => values[i] != null), descending: true,
    });
    (controls.querySelector(":focus") ?? box).dataset.shown = what;
    return made;
  };
  chart = build();
}

// One line per group, one marker per mechanism.
function dots(box, groups, value, spec) {
  const { placement } = box.dataset;
  groups = groups.filter((group) => rowsOf(group, placement).some((row) => value(row.figures, group) > 0));
  if (!groups.length) return;
  const names = order.filter((name) => groups.some((group) => rowsOf(group, placement).some((row) => row.name === name && value(row.figures, group) > 0)));
  const at = (name, group) => { const row = rowsOf(group, placement).find((row) => row.name === name); const v = row && value(row.figures, group); return v > 0 ? v : null; };
  new Chart(box, {
    names, xs: [...groups.keys()], series: new Map(names.map((name) => [name, groups.map((group) => at(name, group))])),
    xTicks: [...groups.keys()], xRange: [-.6, groups.length - .4], xLabel: (i) => groups[i]?.id ?? "", xText: (i) => groups[i].title,
    sideways: true, stops: [...groups.keys()], marked: (values) => [...values.keys()].filter((i) => values[i] != null), shown: firstShown(names, groups.flatMap((group) => [group.floor, group.ceiling])), ...spec,
  });
}

const access = (group) => ["sequential-read", "sequential-write", "random-read"].includes(group.test);
const makers = {
  latency,
  throughput,
  // A group that has a ceiling is in that chart.
  floor: (box) => dots(box, report.groups.filter((group) => group.floor && !group.ceiling && !access(group)), (f) => f.ratio_to_floor, {
    title: "Time, relative to the floor", note: "1 × is the cheapest thing that could do it; further right is slower.", yText: times, yTitle: "times as long as the floor", reference: 1,
  }),
  ceiling: (box) => dots(box, report.groups.filter((group) => group.ceiling && !access(group)), (f) => f.ratio_to_ceiling, {
    title: "Rate, relative to the ceiling", note: "1 × is the most this machine can carry; further right is faster.", yText: times, yTitle: "share of the ceiling's rate", reference: 1, descending: true,
  }),
  access: (box) => dots(box, report.groups.filter(access), (f, group) => {
    const floor = rowsOf(group, box.dataset.placement).find((row) => row.name === group.floor);
    return f.ratio_to_floor ?? (floor && f.ns.p50 / floor.figures.ns.p50);
  }, {
    title: "Region access, relative to private memory", note: "The time of the same loop: at 1 × the mapping costs nothing; further left is faster.", yText: times, yTitle: "times as long", reference: 1,
  }),
};

// Sorting: by what a cell holds, not by what it shows; a row without the figure goes to the end both ways.
function sortable(table) {
  const heads = all("thead th", table);
  heads.forEach((th, column) => {
    const button = element("button", { type: "button", class: "sort", ...(th.title ? { "aria-description": th.title } : {}) }, th.textContent);
    th.replaceChildren(button);
    button.addEventListener("click", () => {
      const sorted = th.getAttribute("aria-sort");
      const descending = sorted ? sorted === "ascending" : th.hasAttribute("data-descending");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        if ("text" in th.dataset) return cell.textContent;
        return cell && "v" in cell.dataset ? Number(cell.dataset.v) : null;
      };
      const body = table.tBodies[0];
      const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : (descending ? -1 : 1) * compare(a, b)));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

function filter() {
  for (const row of all("main tbody tr[data-mechanism]")) row.hidden = !chosen.has(row.dataset.mechanism);
  document.getElementById("chosen").textContent = chosen.size === order.length ? "" : `(${chosen.size} of ${order.length})`;
  for (const chart of charts) chart.update();
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  // A file that is opened from a disk may have no storage.
  const stored = { get: () => { try { return localStorage.getItem("ramway-theme"); } catch { return null; } }, set: (v) => { try { localStorage.setItem("ramway-theme", v); } catch { /* not kept then */ } } };
  const apply = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${name === "dark" ? "light" : "dark"} theme`);
    for (const chart of charts) chart.draw();
  };
  const current = () => stored.get() ?? (dark.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => {
    const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    stored.set(name);
    apply(name);
  });
  dark.addEventListener("change", () => apply(current()));
  addEventListener("beforeprint", () => apply("light"));
  addEventListener("afterprint", () => apply(current()));
  apply(current());
}

function start() {
  theme();
  for (const box of boxes) {
    box.after(sample(box.value));
    box.addEventListener("change", () => {
      chosen[box.checked ? "add" : "delete"](box.value);
      filter();
    });
  }
  for (const button of all("[data-choose]"))
    button.addEventListener("click", () => {
      for (const box of boxes) {
        box.checked = button.dataset.choose === "all";
        chosen[box.checked ? "add" : "delete"](box.value);
      }
      filter();
    });
  document.getElementById("filter").hidden = false;
  if (matchMedia("(max-width: 1000px)").matches) for (const panel of all("aside details")) panel.open = false;

  const columns = document.getElementById("columns");
  const show = () => document.documentElement.classList.toggle("compact", !columns.checked);
  columns.addEventListener("change", show);
  document.getElementById("toolbar").hidden = false;
  show();

  all("table.figures").forEach(sortable);
  for (const row of all(".figures tbody tr")) row.cells[0].prepend(sample(row.dataset.mechanism, false));
  for (const box of all("[data-chart]")) makers[box.dataset.chart](box);
  filter();
}

start();
