// Episodes, log, checkpoints and settings.

import { $, bytes, clock, make, number, show } from "./dom.js";

const ROWS = 100;
const LINES = 1000;

const cell = (text, className = "") => make("td", className ? { class: className } : {}, String(text));

export class Episodes {
  constructor(link) {
    this.link = link;
    $("episode-stage").onchange = $("episode-end").onchange = () => this.paint();
  }

  select(run) {
    this.run = run;
    this.rows = [];
    this.total = 0;
    this.paint();
  }

  async load() {
    const run = this.run;
    const after = this.rows.at(-1)?.number ?? 0;
    const answer = await this.link.ask({ type: "part", run, what: "episodes", after });
    if (run !== this.run || answer.missing) return;
    // A run that went back to a checkpoint counts anew.
    if (answer.total < this.total) { this.rows = []; this.total = 0; return this.load(); }
    this.total = answer.total;
    this.rows = this.rows.concat(answer.episodes).slice(-500);
    this.paint();
  }

  paint() {
    const [stage, end] = [$("episode-stage").value, $("episode-end").value];
    const stages = [...new Set(this.rows.map((row) => row.stage))].sort();
    const options = [...$("episode-stage").options].slice(1).map((option) => option.value);
    if (stages.join() !== options.join() && !stage) $("episode-stage").replaceChildren(make("option", { value: "" }, "all"), ...stages.map((name) => make("option", {}, name)));
    const rows = this.rows.filter((row) => (!stage || row.stage === stage) && (!end || row.reason === end)).slice(-ROWS).reverse();
    $("episode-rows").replaceChildren(...rows.map((row) => make("tr", {}, cell(row.number), cell(number(row.global_step)), cell(row.stage), cell(row.lane),
      cell(row.start_delay), cell(number(row.episode_return)), cell(row.steps), cell(row.furthest_x), cell(row.reason, "end-" + row.reason))));
    $("episodes-note").textContent = this.total ? `${this.total.toLocaleString("en")} ended, the newest first` : "";
    show($("episodes-none"), rows.length === 0);
    $("episodes-none").textContent = this.total ? "No episode among the newest is like that." : "No episode has ended yet.";
  }
}

export class Log {
  constructor(link) {
    this.link = link;
    this.follow = true;
    this.off = new Set();
    $("log-find").oninput = () => this.paint();
    $("log-follow").onclick = () => { this.follow = !this.follow; $("log-follow").setAttribute("aria-pressed", String(this.follow)); this.paint(); };
  }

  select(run) {
    this.run = run;
    this.lines = [];
    this.next = 0;
    this.paint();
  }

  async load() {
    const run = this.run;
    const answer = await this.link.ask({ type: "part", run, what: "log", after: this.next });
    if (run !== this.run || answer.missing) return;
    this.lines = this.lines.concat(answer.lines).slice(-2000);
    this.next = answer.next;
    this.paint();
  }

  prefix(line) {
    return /^(?:[\d\-:.,TZ ]+)?\[([\w-]+)\]/.exec(line)?.[1] ?? "other";
  }

  paint() {
    const prefixes = [...new Set(this.lines.map((line) => this.prefix(line)))].sort();
    const old = [...$("prefixes").children].map((chip) => chip.dataset.prefix);
    if (prefixes.join() !== old.join()) {
      $("prefixes").replaceChildren(...prefixes.map((prefix) => make("button", { type: "button", "data-prefix": prefix, "aria-pressed": String(!this.off.has(prefix)), onclick: (event) => {
        if (!this.off.delete(prefix)) this.off.add(prefix);
        event.currentTarget.setAttribute("aria-pressed", String(!this.off.has(prefix)));
        this.paint();
      } }, prefix)));
    }
    const find = $("log-find").value.toLowerCase();
    const lines = this.lines.filter((line) => !this.off.has(this.prefix(line)) && (!find || line.toLowerCase().includes(find))).slice(-LINES);
    $("log-lines").replaceChildren(...lines.map((line) => make("span", { class: line.includes("[warn]") ? "warn" : this.prefix(line) }, line + "\n")));
    show($("log-none"), lines.length === 0);
    $("log-none").textContent = this.lines.length ? "No line is like that." : "The run has no log yet.";
    if (this.follow) $("log-lines").scrollTop = $("log-lines").scrollHeight;
  }
}

export class Files {
  constructor(link) {
    this.link = link;
  }

  select(run) {
    this.run = run;
    this.paint([], []);
  }

  async load() {
    const run = this.run;
    const answer = await this.link.ask({ type: "part", run, what: "checkpoints" });
    if (run === this.run && !answer.missing) this.paint(answer.checkpoints, answer.videos);
  }

  paint(checkpoints, videos) {
    const rows = checkpoints.map((row) => make("tr", {}, cell(row.name), cell(number(row.global_update)), cell(number(row.global_step)), cell(row.reason ?? "–"), cell(bytes(row.bytes)), cell(clock(row.time))));
    rows.push(...videos.map((row) => {
      const play = make("button", { type: "button", onclick: () => this.play(row.name) }, "play");
      return make("tr", {}, make("td", {}, row.name, " ", play), cell("–"), cell("–"), cell("video"), cell(bytes(row.bytes)), cell(clock(row.time)));
    }));
    $("file-rows").replaceChildren(...rows);
    show($("files-none"), rows.length === 0);
  }

  async play(name) {
    const screen = $("screen");
    screen.replaceChildren("loading …");
    if (!screen.open) screen.showModal();
    try {
      // Fetched rather than linked: the token never becomes part of an address.
      const token = this.link.token();
      const answer = await fetch(`/video/${this.run}/${encodeURIComponent(name)}`, token ? { headers: { authorization: `Bearer ${token}` } } : {});
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const url = URL.createObjectURL(await answer.blob());
      const shown = name.endsWith(".gif") ? make("img", { src: url, alt: name }) : make("video", { src: url, controls: "", autoplay: "", loop: "" });
      screen.replaceChildren(shown, make("form", { method: "dialog", class: "row" }, make("span", {}, name), make("span", { class: "grow" }), make("button", {}, "close")));
      screen.addEventListener("close", () => { URL.revokeObjectURL(url); screen.replaceChildren(); }, { once: true });
    } catch (error) { screen.replaceChildren(make("form", { method: "dialog", class: "row" }, `${name}: ${error.message}`, make("button", {}, "close"))); }
  }
}

export class Settings {
  constructor(link) {
    this.link = link;
    this.configs = [];
    $("only-different").onchange = () => this.paint();
  }

  async choose(runs) {
    this.runs = runs;
    const answers = await Promise.all(runs.map((run) => this.link.ask({ type: "part", run: run.id, what: "config" })));
    if (runs !== this.runs) return;
    this.configs = answers.map((answer) => answer.config ?? {});
    this.paint();
  }

  paint() {
    const only = $("only-different").checked;
    const names = [...new Set(this.configs.flatMap((config) => Object.keys(config)))];
    $("setting-head").replaceChildren(make("tr", {}, make("th", {}, "setting"), ...(this.runs ?? []).map((run) => make("th", {}, run.name))));
    const rows = names.map((name) => {
      const values = this.configs.map((config) => (config[name] === undefined ? "–" : String(config[name])));
      const differs = new Set(values).size > 1;
      return only && !differs ? null : make("tr", differs ? { class: "differs" } : {}, cell(name), ...values.map((value) => cell(value)));
    });
    $("setting-rows").replaceChildren(...rows.filter(Boolean));
  }
}
