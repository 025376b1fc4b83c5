// Which curves are on the screen, and keeping them fresh.

import { Chart, curvesOf, runColor, View } from "./chart.js";
import { $, duration, make, percent, recall, remember, show } from "./dom.js";

const LEARNING = [
  ["clear_rate", "clear rate"], ["avg_return", "return, mean"], ["env_mean_x_pos", "furthest x, mean"], ["env_max_x_pos", "furthest x, best of the last episodes"],
  ["entropy", "entropy"], ["loss_value", "value loss"], ["loss_policy", "policy loss"], ["approx_kl", "KL divergence"],
  ["learning_rate", "learning rate"], ["entropy_bonus", "entropy bonus"], ["episode_length_mean", "episode length"], ["grad_norm", "gradient norm"],
];
const SPEED = [["env_steps_per_sec", "steps/s"], ["time_learn", "learning, s per update"], ["time_engine", "engine, s per update"], ["time_inference", "inference, s per update"]];
const MACHINE = /^(gpu|cpu|mem|ram|vram|rss|disk|load|host|proc|power|temp)[_.]|_(util|mem|rss|memory)(_|$)|percent/;
// Shares that are read as percent, here as in the tiles.
const SHARES = /^(clear_rate|archive_clear_rate|forced_share|clip_fraction)|_ratio$/;
const AXES = new Set(["timestamp", "update", "global_step", "seconds"]);

export class Curves {
  constructor(link) {
    this.link = link;
    this.runs = [];
    this.names = [];
    this.added = recall("added", []);
    this.view = new View();
    this.view.changed = () => this.moved();
    this.charts = new Map();
    this.axis = recall("axis", "global_step");
    $("axis").value = this.axis;
    $("axis").onchange = () => {
      this.axis = $("axis").value;
      remember("axis", this.axis);
      this.view.low = this.view.high = null;
      this.fetch();
    };
    $("unzoom").onclick = () => this.view.reset();
    $("more").onchange = () => this.add($("more").value);
    this.seen = new Set();
    this.watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) this.seen[entry.isIntersecting ? "add" : "delete"](entry.target);
      this.fetch();
    }, { rootMargin: "200px" });
    new ResizeObserver(() => this.charts.forEach((chart) => chart.redraw())).observe($("charts"));
  }

  // Other runs: nothing that is shown is true any more.
  choose(runs) {
    this.runs = runs;
    this.view.low = this.view.high = null;
    this.charts.forEach((chart) => chart.set([]));
    $("legend").replaceChildren(...(runs.length > 1 ? runs.map((run, index) => {
      const key = make("span", { class: "key" }, run.name);
      key.style.setProperty("--key", runColor(index));
      return key;
    }) : []));
  }

  offer(metrics) {
    if (metrics.join() === this.names.join()) return;
    this.names = metrics;
    const known = new Set(LEARNING.concat(SPEED).map(([name]) => name));
    const rest = metrics.filter((name) => !known.has(name) && !AXES.has(name) && !MACHINE.test(name)).sort();
    $("more").replaceChildren(make("option", { value: "" }, "metric …"), ...rest.map((name) => make("option", {}, name)));
    this.build();
  }

  build() {
    const has = new Set(this.names);
    const machine = this.names.filter((name) => MACHINE.test(name));
    const learning = LEARNING.filter(([name]) => has.has(name)).concat(this.added.filter((name) => has.has(name)).map((name) => [name, name]));
    const speed = SPEED.filter(([name]) => has.has(name)).concat(machine.map((name) => [name, name.replaceAll("_", " ")]));
    this.place($("charts"), learning);
    this.place($("machine"), speed);
    show($("curves-none"), learning.length === 0);
    show($("machine-none"), machine.length === 0);
    this.fetch();
  }

  place(parent, wanted) {
    const elements = wanted.map(([name, title]) => {
      let chart = this.charts.get(name);
      if (!chart) {
        const drop = this.added.includes(name) ? () => this.remove(name) : null;
        chart = new Chart(name, title, this.view, drop);
        if (SHARES.test(name)) chart.said = percent;
        this.charts.set(name, chart);
        this.watcher.observe(chart.element);
      }
      return chart.element;
    });
    for (const old of [...parent.children]) if (!elements.includes(old)) old.remove();
    parent.append(...elements);
  }

  add(name) {
    if (name && !this.added.includes(name)) {
      this.added.push(name);
      remember("added", this.added);
      this.build();
    }
    $("more").value = "";
  }

  remove(name) {
    this.added = this.added.filter((one) => one !== name);
    remember("added", this.added);
    const chart = this.charts.get(name);
    this.watcher.unobserve(chart.element);
    chart.element.remove();
    this.charts.delete(name);
  }

  moved() {
    $("unzoom").disabled = this.view.low === null;
    this.charts.forEach((chart) => chart.redraw());
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.fetch(), 120);
  }

  // What was asked for while an answer was under way may not be in that answer.
  async fetch() {
    if (this.busy) { this.later = true; return; }
    const shown = [...this.charts.values()].filter((chart) => this.seen.has(chart.element));
    if (!this.runs.length || !shown.length || document.hidden) return;
    this.busy = true;
    try {
      await this.load(shown);
    } catch { /* the connection comes back, and asks again */ }
    this.busy = false;
    if (this.later) { this.later = false; this.fetch(); }
  }

  async load(charts) {
    const { runs, view } = this;
    const points = Math.max(100, Math.min(1200, Math.round(charts[0].canvas.clientWidth * 1.5) || 400));
    for (let at = 0; at < charts.length; at += 40) {
      const names = charts.slice(at, at + 40).map((chart) => chart.name);
      const answer = await this.link.ask({ type: "curves", runs: runs.map((run) => run.id), names, axis: this.axis, low: view.low, high: view.high, points });
      if (runs !== this.runs) return;
      const found = curvesOf(answer);
      this.spread(charts.slice(at, at + 40), found);
    }
  }

  spread(charts, found) {
    const { view } = this;
    if (view.low === null) {
      let [first, last] = [Infinity, -Infinity];
      for (const curves of found.values()) for (const { x } of curves) if (x.length) { first = Math.min(first, x[0]); last = Math.max(last, x.at(-1)); }
      if (first <= last) view.full = [first, last > first ? last : first + 1];
    }
    const order = new Map(this.runs.map((run, index) => [run.id, index]));
    for (const chart of charts) {
      chart.label = this.axis === "seconds" ? duration : null;
      chart.set((found.get(chart.name) || []).map(({ run, x, y }) => ({ x, y, label: this.runs[order.get(run)].name, color: runColor(order.get(run)) })));
    }
  }
}
