// The first page of a folder with several runs: one row each, with its trend, its best and its cost.

import { $, duration, make, number, percent, show } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [120, 26];

// A small curve of [step, clear rate] pairs; a single one is no trend.
function sparkline(points) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("class", "spark");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", points.length ? `clear rate from ${percent(points[0][1])} to ${percent(points.at(-1)[1])}` : "no trend yet");
  if (points.length > 1) {
    const [first, last] = [points[0][0], points.at(-1)[0]];
    const line = document.createElementNS(SVG, "polyline");
    const place = ([step, rate]) => `${(1 + ((WIDTH - 2) * (step - first)) / (last - first || 1)).toFixed(1)},${(HEIGHT - 2 - (HEIGHT - 4) * rate).toFixed(1)}`;
    line.setAttribute("points", points.map(place).join(" "));
    picture.append(line);
  }
  return picture;
}

export class Runs {
  constructor(choose) {
    this.choose = choose;
    this.shown = "";
  }

  paint(runs) {
    const text = JSON.stringify(runs);
    if (text === this.shown) return;
    this.shown = text;
    $("run-rows").replaceChildren(...runs.map((run) => this.row(run)));
  }

  row(run) {
    const cell = (text, attributes = {}) => make("td", attributes, text);
    const open = make("button", { type: "button", class: "name", onclick: () => this.choose(run.id) }, run.name);
    const best = run.best === null ? "–" : `${run.best} of ${run.best_of}`;
    const gpu = run.device && run.device !== "cpu" && run.seconds ? `, ${number(run.seconds / 3600)} GPU h` : "";
    return make("tr", { "data-run": run.name },
      make("td", {}, open), cell(run.state, { class: "text" }), cell(String(run.config.stages ?? "–"), { class: "text" }),
      make("td", {}, sparkline(run.trend)), cell(percent(run.clear_rate)), cell(best, { title: "start delays cleared with argmax, by the best weights" }),
      cell(number(run.step)), cell(duration(run.seconds ?? NaN) + gpu), cell(run.speed ? `${number(run.speed)} steps/s` : "–"));
  }

  visible(now) {
    show($("all"), now);
  }
}
