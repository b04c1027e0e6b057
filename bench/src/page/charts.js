"use strict";
// The charts. Each holds the series of some mechanisms over one x axis; a mechanism looks the same in all of them.

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"];
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5]];
const charts = [];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The n-th look: two of the first 40 that share a colour differ in dash and marker.
function look(n) {
  const lap = Math.floor(n / 8), color = n % 8;
  return { color: `--c${color}`, dash: DASHES[lap % DASHES.length], shape: SHAPES[(color + lap) % SHAPES.length] };
}

// A marker's outline around (x, y) with radius r, added to a path.
function outline(path, shape, x, y, r) {
  const polygon = (...points) => {
    points.forEach(([dx, dy], i) => path[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    path.closePath();
  };
  if (shape === "circle") {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  } else if (shape === "square") polygon([-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]);
  else if (shape === "triangle") polygon([0, -1.15], [1.1, .85], [-1.1, .85]);
  else if (shape === "down") polygon([0, 1.15], [1.1, -.85], [-1.1, -.85]);
  else if (shape === "diamond") polygon([0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]);
  else {
    const a = .38, b = 1.15;
    polygon([-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]);
  }
}

// The same as a picture, for the filter, the tables and the legends.
function sample(name, line = true) {
  const { color, dash, shape } = looks.get(name);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const width = line ? 30 : 12;
  for (const [key, value] of Object.entries({ class: "sample", width, height: 12, viewBox: `0 0 ${width} 12`, "aria-hidden": "true" })) svg.setAttribute(key, value);
  const add = (d, attributes) => {
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.setAttribute("d", d);
    for (const [key, value] of Object.entries(attributes)) path.style.setProperty(key, value);
    svg.append(path);
  };
  if (line) add("M0 6H30", { stroke: `var(${color})`, "stroke-width": "2", "stroke-dasharray": dash.join(" ") || "none" });
  const words = [];
  const pen = {
    moveTo: (x, y) => words.push(`M${x} ${y}`),
    lineTo: (x, y) => words.push(`L${x} ${y}`),
    closePath: () => words.push("Z"),
    arc: (x, y, r) => words.push(`A${r} ${r} 0 1 1 ${x - r} ${y}A${r} ${r} 0 1 1 ${x + r} ${y}`),
  };
  outline(pen, shape, width / 2, 6, 4);
  add(words.join(""), { fill: `var(${color})` });
  return svg;
}

// Markers drawn as paths of the series, so that they fade with it. `shift` moves them across the axis, in pixels.
function markers(shape, radius, shift) {
  return (u, index, from, to, only) => uPlot.orient(u, index, (series, xs, ys, xScale, yScale, xPos, yPos, xOff, yOff, xDim, yDim) => {
    const fill = new Path2D();
    const draw = (i) => {
      if (ys[i] == null) return;
      const x = xPos(xs[i], xScale, xDim, xOff), y = yPos(ys[i], yScale, yDim, yOff);
      if (xScale.ori === 0) outline(fill, shape, x, y, radius * devicePixelRatio);
      else outline(fill, shape, y, x + shift() * devicePixelRatio, radius * devicePixelRatio);
    };
    if (only) only.forEach(draw);
    else for (let i = from; i <= to; i++) draw(i);
    return { fill, stroke: null, clip: null, flags: 3 };
  });
}

// Places for an axis' lines on a logarithmic scale: 1, 10 and 100 of each unit, and steps between where there are few.
// `step` is what leads from a unit to the next: 1000, or 1024 for bytes.
function ticks(min, max, step = 1000) {
  const decades = Math.log10(max / min);
  const between = decades <= 1.2 ? [1, 1.5, 2, 3, 4, 5, 7] : decades <= 3 ? [1, 2, 5] : [1];
  const out = [];
  for (let unit = Math.floor(Math.log(min) / Math.log(step)) - 1; step ** unit <= max; unit++)
    for (const decade of [1, 10, 100])
      for (const n of between) {
        const value = n * decade * step ** unit;
        if (value >= min * .999 && value <= max * 1.001) out.push(value);
      }
  return out.length > 10 && between.length === 1 ? out.filter((v, i) => i % 2 === 0) : out;
}

// The range of logarithmic data, a little wider than it.
function around(values) {
  let min = Infinity, max = 0;
  for (const list of values) for (const v of list) if (v > 0) { min = Math.min(min, v); max = Math.max(max, v); }
  if (!(max > 0)) return [1, 10];
  const pad = Math.max(Math.pow(max / min, .06), 1.12);
  return [min / pad, max * pad];
}

// spec: { title, note, names, xs, series: Map(name -> values along xs), xTicks, xLabel(x), xTitle, yText(y), yTitle,
//   xLog, lines, sideways, yStep(1024 for bytes), marked(indices to mark), stops(indices for the keyboard), shown: names, reference: y }
class Chart {
  constructor(box, spec) {
    this.box = box;
    this.spec = spec;
    this.off = new Set(spec.names.filter((name) => !spec.shown.includes(name)));
    this.at = null;
    charts.push(this);
    const h = element("h3", {}, spec.title);
    this.plot = element("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${spec.title}. Chart; the arrow keys read out its values, the table has them all.` });
    this.tip = element("div", { class: "tip", hidden: "", "aria-hidden": "true" });
    this.keys = element("ul", { class: "keys", "aria-label": "Shown in this chart" });
    box.replaceChildren(h, ...(spec.note ? [element("p", { class: "quiet" }, spec.note)] : []), ...(spec.controls ?? []), this.plot, this.keys);
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.leave());
    for (const name of spec.names) {
      const button = element("button", { type: "button", "aria-pressed": String(!this.off.has(name)), "data-name": name });
      button.append(sample(name, spec.lines), name);
      button.addEventListener("click", () => {
        if (!this.off.delete(name)) this.off.add(name);
        this.update();
      });
      button.addEventListener("mouseenter", () => this.focus(name));
      button.addEventListener("mouseleave", () => this.focus(null));
      this.keys.append(element("li", this.off.has(name) ? { class: "rest" } : {}, button));
    }
    // What the chart begins without is behind one more button.
    const rest = element("button", { type: "button", class: "rest-of", "aria-expanded": "false" }, `${this.off.size} more`);
    rest.addEventListener("click", () => rest.setAttribute("aria-expanded", String(this.keys.classList.toggle("all"))));
    if (this.off.size) this.keys.append(element("li", {}, rest));
    this.draw();
    new ResizeObserver(() => {
      const width = this.plot.clientWidth - 10;
      if (this.u && Math.abs(width - this.u.width) > 1) this.draw();
    }).observe(this.plot);
  }

  visible(name) {
    return chosen.has(name) && !this.off.has(name);
  }

  height() {
    const { sideways, xs } = this.spec;
    return sideways ? 74 + this.row() * xs.length : this.plot.clientWidth < 520 ? 280 : 340;
  }

  // Pixels of a group's row.
  row() {
    return this.spec.xs.length > 12 ? 32 : 40;
  }

  // Where a mechanism's marker lies inside its row, so that equal values do not cover each other.
  shift(name) {
    const names = this.spec.names.filter((name) => this.visible(name));
    return ((names.indexOf(name) + .5) / names.length - .5) * this.row() * .62;
  }

  draw() {
    const { spec } = this;
    this.u?.destroy();
    const [text, quiet, grid, line] = ["--text", "--quiet", "--grid", "--line"].map(css);
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const shown = () => spec.names.filter((name) => this.visible(name)).map((name) => spec.series.get(name));
    const range = () => around([...shown(), spec.reference ? [spec.reference] : []]);
    const axis = { stroke: quiet, font, labelFont: font, labelSize: 18, border: { show: true, stroke: line, width: 1 }, ticks: { stroke: line, size: 4, width: 1, filter: (u, s) => s }, filter: (u, s) => s };
    const narrow = this.plot.clientWidth < 520;
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.font = font;
    const widest = (texts) => Math.ceil(Math.max(0, ...texts.map((t) => canvas.measureText(t).width)));
    const x = {
      ...axis, scale: "x", side: spec.sideways ? 3 : 2, grid: { stroke: grid, width: 1, filter: (u, s) => s },
      label: spec.xTitle, splits: () => spec.xTicks, space: 0, size: 30,
      values: (u, splits) => {
        // Labels that would touch are left out, all the same from both ends.
        const room = spec.sideways ? Infinity : u.bbox.width / devicePixelRatio;
        const texts = splits.map((v) => spec.xLabel(v));
        const step = Math.max(1, Math.ceil((widest(texts) + 10) * splits.length / room));
        return texts.map((t, i) => (spec.sideways || i % step === 0 ? t : ""));
      },
    };
    if (spec.sideways) x.size = Math.min(widest(spec.xTicks.map(spec.xLabel)) + 14, Math.round(this.plot.clientWidth * .5));
    const y = {
      ...axis, scale: "y", side: spec.sideways ? 2 : 3, grid: { stroke: grid, width: 1, filter: (u, s) => s },
      label: narrow && !spec.sideways ? undefined : spec.yTitle, space: 0,
      splits: (u, i, min, max) => ticks(min, max, spec.yStep),
      values: (u, splits) => {
        const texts = splits.map((v) => spec.yText(v));
        if (!spec.sideways) return texts;
        const step = Math.max(1, Math.ceil((widest(texts) + 12) * splits.length / (u.bbox.width / devicePixelRatio)));
        return texts.map((t, n) => (n % step ? "" : t));
      },
      size: (u, values) => (spec.sideways ? 32 : widest(values ?? []) + 14),
    };
    this.u = new uPlot({
      width: this.plot.clientWidth - 10, height: this.height(), pxAlign: false, padding: [10, 14, 0, 0],
      legend: { show: false }, focus: { alpha: .25 },
      cursor: { drag: { x: false, y: false }, focus: { prox: 24 }, hover: { skip: [null, undefined] }, points: { size: 9, one: true, show: !spec.sideways }, x: !spec.sideways, y: false },
      scales: {
        x: { time: false, distr: spec.xLog ? 3 : 1, log: 10, range: () => spec.xRange, ori: spec.sideways ? 1 : 0, dir: spec.sideways ? -1 : 1 },
        y: { distr: 3, log: 10, range, ori: spec.sideways ? 0 : 1 },
      },
      axes: [x, y],
      series: [{}, ...spec.names.map((name) => {
        const { color, dash, shape } = looks.get(name);
        const own = kinds.get(name) === "ramway";
        return {
          label: name, show: this.visible(name), stroke: css(color), fill: undefined, width: spec.lines ? (own ? 2.6 : 1.6) : 0, dash,
          spanGaps: true, paths: spec.lines ? uPlot.paths.linear() : () => null,
          points: { show: true, size: 8, width: 0, fill: css(color), paths: markers(shape, own ? 5 : 4, () => this.shift(name)), filter: (u, i) => spec.marked(u.data[i]) },
        };
      })],
      hooks: {
        setCursor: [() => this.hover()],
        setSeries: [(u, i) => { this.nearest = i; this.hover(); }],
        drawAxes: [(u) => {
          if (!spec.reference) return;
          const at = u.valToPos(spec.reference, "y", true), { left, top, width, height } = u.bbox;
          u.ctx.save();
          u.ctx.strokeStyle = text;
          u.ctx.lineWidth = devicePixelRatio;
          u.ctx.beginPath();
          if (spec.sideways) { u.ctx.moveTo(at, top); u.ctx.lineTo(at, top + height); } else { u.ctx.moveTo(left, at); u.ctx.lineTo(left + width, at); }
          u.ctx.stroke();
          u.ctx.restore();
        }],
      },
    }, [spec.xs, ...spec.names.map((name) => spec.series.get(name))], this.plot);
    this.plot.append(this.tip);
    this.leave();
  }

  // After the filter or a key of the legend has changed.
  update() {
    this.spec.names.forEach((name, i) => {
      const show = this.visible(name), button = this.keys.children[i].firstChild;
      if (this.u.series[i + 1].show !== show) this.u.setSeries(i + 1, { show });
      button.setAttribute("aria-pressed", String(!this.off.has(name)));
      button.parentNode.hidden = !chosen.has(name);
    });
    this.u.redraw(true, true);
    this.leave();
  }

  focus(name) {
    const index = name === null ? null : this.spec.names.indexOf(name) + 1;
    if (index === null || this.u.series[index].show) this.u.setSeries(index, { focus: true });
  }

  leave() {
    this.at = null;
    this.tip.hidden = true;
  }

  hover() {
    if (this.byKey) return;
    const { u } = this;
    if (!u || u.cursor.idx == null || u.cursor.left < 0) return this.leave();
    this.show(u.cursor.idx, this.nearest > 0 ? this.spec.names[this.nearest - 1] : null, u.cursor.left, u.cursor.top);
  }

  // The values at index `i`, best in the chart's order first; the nearest series stands out.
  show(i, here, left, top) {
    const { spec, u } = this;
    const value = (name) => spec.series.get(name)[u.cursor.idxs?.[spec.names.indexOf(name) + 1] ?? i] ?? spec.series.get(name)[i];
    const rows = spec.names.filter((name) => this.visible(name) && value(name) != null);
    if (!rows.length) return this.leave();
    rows.sort((a, b) => value(a) - value(b));
    if (spec.descending) rows.reverse();
    const table = element("table");
    for (const name of rows.slice(0, 14)) {
      const tr = element("tr", { class: name === here ? "here" : "" });
      const th = element("th");
      th.append(sample(name, false), name);
      tr.append(th, element("td", {}, spec.yText(value(name), true)));
      table.append(tr);
    }
    this.tip.replaceChildren(element("strong", {}, spec.xText(spec.xs[i])), table);
    this.tip.hidden = false;
    const frame = this.plot.getBoundingClientRect(), over = u.over.getBoundingClientRect(), box = this.tip.getBoundingClientRect();
    const x = over.left - frame.left + left, y = over.top - frame.top + top;
    this.tip.style.left = `${Math.max(2, x + 16 + box.width > frame.width ? x - 16 - box.width : x + 16)}px`;
    this.tip.style.top = `${Math.max(2, Math.min(y - 10, frame.height - box.height - 4))}px`;
  }

  // Left and right go along the axis, up and down from series to series, Escape leaves.
  key(event) {
    const { spec, u } = this;
    if (event.target !== this.plot) return;
    const names = spec.names.filter((name) => this.visible(name));
    const stops = spec.stops;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e6, 0], End: [1e6, 0], Escape: [] }[event.key];
    if (!step || !names.length) return;
    event.preventDefault();
    if (event.key === "Escape") { this.focus(null); return this.leave(); }
    const clamp = (n, max) => Math.min(Math.max(n, 0), max);
    this.at = this.at ? [clamp(this.at[0] + step[0], stops.length - 1), (this.at[1] + step[1] + names.length) % names.length] : [0, 0];
    const [stop, which] = this.at, i = stops[stop], name = names[which];
    const value = spec.series.get(name)[i];
    const along = u.valToPos(spec.xs[i], "x"), across = value == null ? 20 : u.valToPos(value, "y");
    const [left, top] = spec.sideways ? [across, along] : [along, across];
    this.byKey = true;
    u.setCursor({ left, top });
    this.focus(name);
    this.byKey = false;
    const at = this.at;
    this.show(i, name, left, top);
    this.at = at;
    document.getElementById("live").textContent = `${name}, ${spec.xText(spec.xs[i])}: ${value == null ? "not measured" : spec.yText(value, true)}`;
  }
}
