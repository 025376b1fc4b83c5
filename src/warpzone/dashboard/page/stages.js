// The board of 32 stages (clear rate, its trend, where most episodes fail), and where episodes of one
// of them end.

import { ticks } from "./chart.js";
import { $, color, make, percent, recall, remember } from "./dom.js";

const NAMES = Array.from({ length: 32 }, (_, index) => `${Math.floor(index / 4) + 1}-${(index % 4) + 1}`);
const ENDS = ["death", "stall", "flag"];
const SVG = "http://www.w3.org/2000/svg";

// Points of a small curve of shares, 48 x 12; a single one is no trend.
function curve(shares) {
  if (shares.length < 2) return "";
  return shares.map((share, index) => `${(1 + (46 * index) / (shares.length - 1)).toFixed(1)},${(11 - 10 * share).toFixed(1)}`).join(" ");
}

export class Stages {
  constructor(link) {
    this.link = link;
    this.run = null;
    this.stage = recall("stage", null);
    this.maps = new Map();
    this.stages = {};
    $("rate-of").value = recall("rate-of", "recent");
    $("rate-of").onchange = () => { remember("rate-of", $("rate-of").value); this.paint(); };
    this.buttons = new Map();
    // The style makes worlds columns, on a phone rows.
    for (const name of NAMES) this.button(name);
    new ResizeObserver(() => this.drawEnds()).observe($("ends").parentElement);
  }

  button(name) {
    const [rate, worst] = [make("span", {}, "–"), make("small", {}, "")];
    const trend = document.createElementNS(SVG, "svg");
    const line = document.createElementNS(SVG, "polyline");
    trend.setAttribute("viewBox", "0 0 48 12");
    trend.setAttribute("aria-hidden", "true");
    trend.append(line);
    const button = make("button", { type: "button", class: "unknown", "data-stage": name, "aria-pressed": "false", onclick: () => this.choose(name) }, make("b", {}, name), rate, trend, worst);
    this.buttons.set(name, { button, rate, line, worst });
    $("grid").append(button);
  }

  select(run) {
    this.run = run;
    this.stages = {};
    this.ends = null;
    this.paint();
    this.drawEnds();
  }

  async load() {
    const run = this.run;
    const answer = await this.link.ask({ type: "part", run, what: "stages" });
    if (run !== this.run || answer.missing) return;
    this.stages = answer.stages;
    this.paint();
    if (!this.stages[this.stage]) this.stage = NAMES.find((name) => this.stages[name]) ?? null;
    if (this.stage) await this.loadEnds();
  }

  choose(name) {
    this.stage = name;
    remember("stage", name);
    this.paint();
    this.loadEnds().catch(() => {});
  }

  async loadEnds() {
    const [run, stage] = [this.run, this.stage];
    const answer = await this.link.ask({ type: "part", run, what: "ends", stage });
    if (run !== this.run || stage !== this.stage || answer.missing) return;
    this.ends = answer;
    this.paint();
    this.drawEnds();
    if (!this.maps.has(stage)) {
      this.maps.set(stage, null);
      this.maps.set(stage, await this.loadMap(run, stage));
      this.drawEnds();
    }
  }

  async loadMap(run, stage) {
    const answer = await this.link.ask({ type: "part", run, what: "map", stage });
    if (!answer.width) return null;
    const picture = await createImageBitmap(new Blob([new Uint8Array(answer.buffer, answer.offset)], { type: answer.kind }));
    return { picture, width: answer.width, left: answer.left, area: answer.area };
  }

  rate(name) {
    const stage = this.stages[name];
    if (!stage) return null;
    const of = $("rate-of").value;
    if (of === "recent") return stage.rate;
    const pair = stage.evaluated[of];
    return pair && pair[1] ? pair[0] / pair[1] : null;
  }

  paint() {
    const of = $("rate-of").value;
    for (const [name, { button, rate, line, worst }] of this.buttons) {
      const value = this.rate(name);
      const stage = this.stages[name];
      const trend = (value === null ? null : stage?.trend[of]) ?? [];
      const place = (value === null ? null : stage?.worst[of]) ?? null;
      line.setAttribute("points", curve(trend));
      worst.textContent = place ? `x ${place[0]}` : "";
      button.classList.toggle("unknown", value === null);
      button.setAttribute("aria-pressed", String(name === this.stage));
      button.style.background = value === null ? "" : `color-mix(in srgb, ${color("--flag")} ${Math.round(value * 85)}%, color-mix(in srgb, ${color("--death")} 22%, ${color("--card")}))`;
      button.style.color = value !== null && value > 0.65 ? "var(--card)" : "";
      rate.textContent = value === null ? "–" : Math.round(100 * value) + " %";
      button.title = value === null ? `${name}: not played` : `${name}: ${percent(value)} cleared` + (trend.length > 1 ? `, ${percent(trend[0])} before` : "") + (place ? `; most fail at x ${place[0]} (${place[1]})` : "") + `; ${stage.episodes} episodes, furthest x ${stage.furthest}`;
      button.setAttribute("aria-label", button.title);
    }
  }

  drawEnds() {
    const canvas = $("ends"), parent = canvas.parentElement;
    const ends = this.ends;
    const map = this.maps.get(this.stage);
    $("ends-title").textContent = this.stage ? `Where episodes of ${this.stage} end` : "Where episodes end";
    const width = map?.width || Math.max(3392, (ends?.furthest ?? 0) + 64);
    const height = 180, ratio = window.devicePixelRatio || 1;
    const shown = Math.max(parent.clientWidth, Math.min(width * 0.75, 4000));
    Object.assign(canvas, { width: Math.round(shown * ratio), height: height * ratio });
    canvas.style.width = shown + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const px = (x) => (x / width) * shown;
    pen.fillStyle = color("--sky");
    pen.fillRect(0, 0, shown, height - 16);
    if (map) { pen.globalAlpha = 0.75; pen.imageSmoothingEnabled = false; pen.drawImage(map.picture, px(map.left), 0, shown - px(map.left), height - 16); pen.globalAlpha = 1; }
    else { pen.fillStyle = color("--ground"); pen.fillRect(0, height - 28, shown, 12); }
    pen.fillStyle = color("--card");
    pen.fillRect(0, height - 16, shown, 16);
    this.bars(pen, ends, px, height - 28);
    this.restarts(pen, map ? (ends?.restarts ?? []).filter((one) => one[2] === map.area[0] && one[3] === map.area[1]) : ends?.restarts ?? [], px, height - 16);
    pen.fillStyle = color("--quiet");
    pen.font = "10.5px system-ui, sans-serif";
    pen.textAlign = "center";
    for (const tick of ticks(0, width, Math.floor(shown / 110))) pen.fillText(tick, Math.max(12, px(tick)), height - 4);
  }

  // The archive: where episodes may begin. Pink: no attempt gains ground; light blue: all do; the
  // largest, where half do, teach most.
  restarts(pen, found, px, floor) {
    $("ends").dataset.restarts = found.length;
    for (const [x, y, , , share] of found) {
      const [at, line] = [px(x + 8), Math.max(6, Math.min(floor - 6, ((239 - y) / 208) * floor))];
      const size = share === null ? 3 : 3 + 10 * share * (1 - share);
      pen.beginPath();
      pen.moveTo(at - size, line);
      pen.lineTo(at, line - size);
      pen.lineTo(at + size, line);
      pen.lineTo(at, line + size);
      pen.closePath();
      pen.fillStyle = share === null ? "#fff" : `color-mix(in srgb, #5af0ff ${Math.round(100 * share)}%, #ff5ac8)`;
      pen.fill();
      pen.strokeStyle = "#000";
      pen.stroke();
    }
  }

  bars(pen, ends, px, floor) {
    const note = $("ends-note");
    const total = {};
    for (const kind of ENDS) total[kind] = (ends?.ends[kind] ?? []).reduce((sum, [, count]) => sum + count, 0);
    const all = ENDS.reduce((sum, kind) => sum + total[kind], 0);
    if (!all) { note.textContent = this.stage ? "no episode has ended here yet" : "choose a stage"; return; }
    const stacked = new Map();
    let most = 0, worst = [0, 0];
    for (const kind of ENDS) for (const [bin, count] of ends.ends[kind]) {
      stacked.set(bin, (stacked.get(bin) ?? 0) + count);
      if (kind !== "flag" && stacked.get(bin) > worst[1]) worst = [bin, stacked.get(bin)];
      if (kind !== "flag") most = Math.max(most, stacked.get(bin));
    }
    const below = new Map();
    const wide = Math.max(2, px(ends.bin) - 0.5);
    for (const kind of ENDS) {
      pen.fillStyle = color("--" + kind);
      for (const [bin, count] of ends.ends[kind]) {
        // Roots: one place where most die does not hide the others.
        const from = below.get(bin) ?? 0;
        const high = (value) => Math.sqrt(Math.min(1, value / (most || 1))) * (floor - 12);
        pen.globalAlpha = 0.85;
        pen.fillRect(px(bin * ends.bin), floor - high(from + count), wide, high(from + count) - high(from) || 1);
        below.set(bin, from + count);
      }
    }
    pen.globalAlpha = 1;
    note.textContent = `${all} episodes, ${percent(total.flag / all)} cleared` + (worst[1] ? `; most end at x ${worst[0] * ends.bin} (${worst[1]})` : "");
  }
}
