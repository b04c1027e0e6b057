// What the page counts and times. Every exposure since the first one that came is accounted for: shown or missed, and
// where.

/** Milliseconds that the table and the chart go back. */
export const SPAN = 10_000;

/** @typedef {{ at: number, node: number, canvas: number, missed: number }} Shown */

export class Figures {
  exposed = 0;
  intact = 0;
  broken = 0;
  late = 0;
  ringFull = 0;
  nodeSkipped = 0;
  pageSkipped = 0;
  replaced = 0;
  /** 1: the last one that came is not drawn yet. */
  waiting = 0;
  /** Pictures of the last seconds. @type {Shown[]} */
  shown = [];
  #last;
  #missed = 0;

  /**
   * A picture came, whether or not it will be drawn.
   * @param {import('../frame.mjs').Frame} frame
   * @param {import('../frame.mjs').Said} said
   */
  came(frame, said) {
    const now = { ...frame, ...said };
    // Another camera counts from the beginning; how far the one before it came is known only up to its last picture.
    const last = this.#last?.started === now.started ? this.#last : { ...now, number: now.number - 1 };
    this.exposed += now.number - last.number;
    this.#missed += now.number - last.number - 1;
    for (const what of ['late', 'ringFull', 'nodeSkipped', 'pageSkipped']) this[what] += now[what] - last[what];
    this.#last = now;
    this.waiting = 1;
  }

  /** One that came is not drawn: the next one was there before the screen was refreshed. */
  replace() {
    this.replaced++;
    this.#missed++;
  }

  /** The last one that came was drawn at `at`; all in milliseconds of the page's clock. */
  drew(/** @type {Omit<Shown, 'missed'>} */ times, /** @type {boolean} */ intact) {
    this[intact ? 'intact' : 'broken']++;
    this.shown.push({ ...times, missed: this.#missed });
    this.#missed = 0;
    this.waiting = 0;
  }

  /** Leaves out what was before the last seconds. */
  forget(/** @type {number} */ now) {
    while (this.shown.length > 0 && this.shown[0].at < now - SPAN) this.shown.shift();
  }

  /** Exposures that are in none of the counts; anything but 0 is a mistake. */
  get unaccounted() {
    const shown = this.intact + this.broken;
    const missed = this.late + this.ringFull + this.nodeSkipped + this.pageSkipped + this.replaced;
    return this.exposed - shown - missed - this.waiting;
  }

  /** Pictures shown a second, over the last two. */
  rate(/** @type {number} */ now) {
    const since = Math.max(now - 2000, this.shown[0]?.at ?? now);
    return now > since ? (this.shown.filter(({ at }) => at > since).length * 1000) / (now - since) : 0;
  }

  /** Latencies in milliseconds. */
  latency(/** @type {'node' | 'canvas'} */ to) {
    const sorted = this.shown.map((shown) => shown[to]).sort((a, b) => a - b);
    const part = (/** @type {number} */ share) => sorted[Math.ceil(sorted.length * share) - 1];
    return { median: part(0.5), p95: part(0.95), worst: part(1) };
  }
}

/**
 * Latency over time, a point a picture, with a mark where pictures were missed.
 * @param {HTMLCanvasElement} canvas
 * @param {Shown[]} shown
 * @param {number} now
 */
export function chart(canvas, shown, now) {
  const scale = devicePixelRatio;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const style = getComputedStyle(canvas);
  const colour = (/** @type {string} */ name) => {
    // A custom property is text: what light-dark() comes to is known where it is used.
    canvas.style.color = `var(--${name})`;
    return style.color;
  };
  const [line, dim, series, bad] = ['line', 'dim', 'series', 'bad'].map(colour);
  context.scale(scale, scale);
  context.font = `12px ${style.fontFamily}`;
  const [left, bottom] = [40, height - 18];
  const top = [20, 50, 100, 200, 500, 1000, 2000].find((limit) => shown.every(({ canvas }) => canvas <= limit)) ?? 5000;
  const x = (/** @type {number} */ at) => left + (1 - (now - at) / SPAN) * (width - left);
  const y = (/** @type {number} */ ms) => bottom - (Math.min(ms, top) / top) * (bottom - 8);

  context.fillStyle = dim;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const ms of [0, top / 2, top]) {
    context.fillText(String(ms), left - 6, y(ms));
    context.strokeStyle = line;
    context.strokeRect(left, Math.round(y(ms)) + 0.5, width - left, 0);
  }
  context.textBaseline = 'alphabetic';
  context.fillText('now', width, height - 3);
  context.textAlign = 'left';
  context.fillText('10 s ago', left, height - 3);
  context.textAlign = 'center';
  if (shown.some(({ missed }) => missed > 0)) {
    context.fillStyle = bad;
    context.fillText('▴ pictures missed', left + (width - left) / 2, height - 3);
  }
  for (const { at, canvas, missed } of shown) {
    context.fillStyle = series;
    context.fillRect(x(at) - 1, y(canvas) - 1, 2, 2);
    context.fillStyle = bad;
    if (missed > 0) context.fillRect(x(at) - 1, bottom - 6, 2, 6);
  }
}
