// Curves on a canvas. All charts of a group show the same range; the server sends as many points as
// fit on the screen, so that a long run pans and zooms like a short one.

import { color, make, number, RUN_COLORS } from "./dom.js";

const PAD = { left: 46, right: 8, top: 6, bottom: 18 };

export class View {
  // What is shown: a range, or all there is.
  constructor() {
    this.low = this.high = null;
    this.full = [0, 1];
    this.changed = () => {};
  }

  range() {
    return this.low === null ? this.full : [this.low, this.high];
  }

  set(low, high) {
    const [first, last] = this.full;
    if (!(high > low)) return;
    const width = Math.min(high - low, last - first);
    const begin = Math.max(first, Math.min(low, last - width));
    const whole = width >= (last - first) * 0.999;
    this.low = whole ? null : begin;
    this.high = whole ? null : begin + width;
    this.changed();
  }

  reset() {
    this.low = this.high = null;
    this.changed();
  }

  zoom(factor, share = 0.5) {
    const [low, high] = this.range();
    const at = low + share * (high - low);
    this.set(at - (at - low) * factor, at + (high - at) * factor);
  }

  pan(share) {
    const [low, high] = this.range();
    const by = share * (high - low);
    const [first, last] = this.full;
    const shift = Math.max(first - low, Math.min(by, last - high));
    this.set(low + shift, high + shift);
  }
}

export class Chart {
  constructor(name, title, view, onDrop) {
    this.name = name;
    this.view = view;
    this.curves = [];
    this.output = make("output", {}, "–");
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": title, "data-name": name });
    const drop = onDrop && make("button", { class: "drop", type: "button", "aria-label": `Remove ${title}`, onclick: onDrop }, "×");
    this.element = make("figure", { class: "chart" }, make("figcaption", {}, title, this.output, drop), this.canvas);
    this.title = title;
    this.hover = null;
    this.drag = null;
    // How a value is written.
    this.said = number;
    this.listen();
  }

  // curves: [{label, color, x, y}]
  set(curves) {
    this.curves = curves;
    const first = curves[0];
    const last = first?.y[first.y.length - 1];
    this.canvas.dataset.points = curves.reduce((sum, curve) => sum + curve.x.length, 0);
    this.canvas.dataset.last = last ?? "";
    this.canvas.dataset.until = first?.x[first.x.length - 1] ?? "";
    this.output.textContent = this.said(last);
    this.canvas.setAttribute("aria-label", `${this.title}, now ${this.said(last)}`);
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  share(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right)));
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" && !event.isPrimary) return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = { from: this.share(event), to: this.share(event), pan: event.shiftKey || event.pointerType === "touch", range: this.view.range() };
    });
    canvas.addEventListener("pointermove", (event) => {
      this.hover = this.share(event);
      if (this.drag) {
        this.drag.to = this.hover;
        if (this.drag.pan) {
          const [low, high] = this.drag.range;
          const by = (this.drag.from - this.drag.to) * (high - low);
          const [first, last] = this.view.full;
          const shift = Math.max(first - low, Math.min(by, last - high));
          if (this.view.low !== null) this.view.set(low + shift, high + shift);
        }
      }
      this.redraw();
    });
    const end = () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !drag.pan && Math.abs(drag.to - drag.from) > 0.02) {
        const [low, high] = this.view.range();
        const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
        this.view.set(low + from * (high - low), low + to * (high - low));
      }
      this.redraw();
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.redraw(); });
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.output.textContent = this.said(this.curves[0]?.y.at(-1)); this.redraw(); });
    canvas.addEventListener("dblclick", () => this.view.reset());
    canvas.addEventListener("wheel", (event) => {
      // The page scrolls unless the chart has been chosen or a range is shown already.
      if (document.activeElement !== canvas && !event.ctrlKey && this.view.low === null) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.view.pan((event.deltaX || event.deltaY) / 800);
      else this.view.zoom(Math.exp(event.deltaY / 500), this.share(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const act = {
        "+": () => this.view.zoom(0.7), "=": () => this.view.zoom(0.7), "-": () => this.view.zoom(1.4),
        ArrowLeft: () => this.view.pan(-0.15), ArrowRight: () => this.view.pan(0.15), 0: () => this.view.reset(), Escape: () => this.view.reset(),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }

  draw() {
    const canvas = this.canvas, box = canvas.getBoundingClientRect();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    const [low, high] = this.view.range();
    const any = this.curves.some((curve) => curve.x.length);
    canvas.dataset.axes = any ? "drawn" : "none";
    if (!any) { this.nothing(pen, box); return; }
    const [bottom, top] = this.heights(low, high);
    const w = box.width - PAD.left - PAD.right, h = box.height - PAD.top - PAD.bottom;
    const px = (x) => PAD.left + ((x - low) / (high - low || 1)) * w;
    const py = (y) => PAD.top + (1 - (y - bottom) / (top - bottom || 1)) * h;
    this.axes(pen, box, low, high, bottom, top, px, py);
    pen.save();
    pen.beginPath();
    pen.rect(PAD.left, 0, w, box.height - PAD.bottom + 1);
    pen.clip();
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    for (const curve of this.curves) {
      pen.strokeStyle = curve.color;
      pen.beginPath();
      for (let i = 0; i < curve.x.length; i++) pen.lineTo(px(curve.x[i]), py(curve.y[i]));
      pen.stroke();
      if (curve.x.length === 1) { pen.fillStyle = curve.color; pen.fillRect(px(curve.x[0]) - 2, py(curve.y[0]) - 2, 4, 4); }
    }
    pen.restore();
    this.pointer(pen, box, low, high, px, py, w);
  }

  // Axes without values would be made up.
  nothing(pen, box) {
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = color("--quiet");
    pen.textAlign = "center";
    pen.fillText("no values yet", box.width / 2, box.height / 2);
  }

  heights(low, high) {
    let bottom = Infinity, top = -Infinity;
    for (const { x, y } of this.curves) {
      for (let i = 0; i < x.length; i++) {
        if (x[i] < low || x[i] > high) continue;
        if (y[i] < bottom) bottom = y[i];
        if (y[i] > top) top = y[i];
      }
    }
    if (bottom > top) return [0, 1];
    if (bottom >= 0 && bottom < 0.5 * top) bottom = 0;
    const gap = (top - bottom || Math.abs(top) || 1) * 0.06;
    return [bottom === 0 ? 0 : bottom - gap, top + gap];
  }

  axes(pen, box, low, high, bottom, top, px, py) {
    pen.font = "10.5px system-ui, sans-serif";
    pen.fillStyle = color("--quiet");
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const levels = ticks(bottom, top, 4);
    const written = this.said === number ? labels(levels) : levels.map((level) => +(100 * level).toPrecision(3) + " %");
    levels.forEach((tick, index) => {
      pen.beginPath();
      pen.moveTo(PAD.left, py(tick));
      pen.lineTo(box.width - PAD.right, py(tick));
      pen.stroke();
      pen.fillText(written[index], PAD.left - 5, py(tick), PAD.left - 7);
    });
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    const marks = ticks(low, high, Math.max(2, Math.floor(box.width / 90)));
    const names = this.label ? marks.map(this.label) : labels(marks);
    canvasTicks(this.canvas, names);
    for (const [index, tick] of marks.entries()) {
      const text = names[index];
      const at = Math.max(PAD.left + 4, Math.min(px(tick), box.width - 4 - pen.measureText(text).width / 2));
      pen.fillText(text, at, box.height - 4);
    }
  }

  pointer(pen, box, low, high, px, py, w) {
    if (this.drag && !this.drag.pan) {
      pen.fillStyle = color("--focus") + "33";
      const from = PAD.left + Math.min(this.drag.from, this.drag.to) * w;
      pen.fillRect(from, PAD.top, Math.abs(this.drag.to - this.drag.from) * w, box.height - PAD.top - PAD.bottom);
    } else if (this.hover !== null && this.curves.length) {
      const at = low + this.hover * (high - low);
      const said = [];
      const near = (high - low) / 100;
      for (const curve of this.curves) {
        const i = nearest(curve.x, at);
        // A run that had not begun or was over has no value here.
        if (i < 0 || at > curve.x.at(-1) + near || at < curve.x[0] - near) continue;
        pen.fillStyle = curve.color;
        pen.beginPath();
        pen.arc(px(curve.x[i]), py(curve.y[i]), 3, 0, 7);
        pen.fill();
        if (!said.length) said.push("at " + (this.label ? this.label(curve.x[i]) : short(curve.x[i])) + ":");
        said.push(this.curves.length > 1 && curve.label ? `${curve.label} ${this.said(curve.y[i])},` : this.said(curve.y[i]));
      }
      this.output.textContent = said.join(" ").replace(/,$/, "");
    }
  }
}

export function curvesOf(message) {
  // The answer of the server as Map(name -> [{run, x, y}]).
  const found = new Map();
  let at = message.offset;
  for (const { run, name, count } of message.curves) {
    const x = new Float64Array(message.buffer, at, count);
    const y = new Float64Array(message.buffer, at + 8 * count, count);
    at += 16 * count;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push({ run, x, y });
  }
  return found;
}

export const runColor = (index) => RUN_COLORS[index % RUN_COLORS.length];

function nearest(x, at) {
  let low = 0, high = x.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < at) low = middle + 1; else high = middle;
  }
  return low > 0 && at - x[low - 1] < x[low] - at ? low - 1 : low;
}

export function ticks(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) found.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
  return found;
}

// Ticks as text, with as many digits as tell them apart.
export function labels(values) {
  let found = [];
  for (let digits = 3; digits < 12; digits++) {
    found = values.map((value) => short(value, digits));
    if (new Set(found).size === found.length) break;
  }
  return found;
}

// For tests and readers of the page: what the axis says.
function canvasTicks(canvas, names) {
  canvas.dataset.ticks = names.join(" ");
}

export function short(value, digits = 3) {
  const size = Math.abs(value);
  if (size >= 1e9) return +(value / 1e9).toPrecision(digits) + "G";
  if (size >= 1e6) return +(value / 1e6).toPrecision(digits) + "M";
  if (size >= 1e3) return +(value / 1e3).toPrecision(digits) + "k";
  if (size !== 0 && size < 1e-3) return String(+value.toPrecision(digits)).includes("e") ? value.toExponential(digits - 2) : String(+value.toPrecision(digits - 1));
  return String(+value.toPrecision(digits));
}
