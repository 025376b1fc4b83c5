// Commands to a run. Each is a file in its folder; the run answers when it has obeyed.

import { $, clock, make, number, recall, remember, show } from "./dom.js";

export class Operations {
  constructor(link) {
    this.link = link;
    this.rights = { control: false, allowed: false, bounds: {} };
    this.pending = new Map();
    $("who").value = recall("who", "");
    $("who").onchange = () => remember("who", $("who").value);
    $("login").onsubmit = (event) => {
      event.preventDefault();
      link.token($("token").value.trim());
      $("token").value = "";
      link.reconnect();
    };
    for (const button of document.querySelectorAll("[data-do]")) {
      button.onclick = () => {
        if (button.dataset.do === "stop" && !confirm("End this run after the current update?")) return;
        this.send(button.dataset.do);
      };
    }
    for (const form of document.querySelectorAll("[data-set]")) {
      form.onsubmit = (event) => {
        event.preventDefault();
        const value = Number(form.elements.value.value);
        const [low, high] = this.rights.bounds[form.dataset.set] ?? [0, 0];
        if (form.elements.value.value.trim() === "" || !(value >= low && value <= high)) this.say(`${form.dataset.set} must be in ${low}..${high}`, true);
        else this.send(form.dataset.set, value);
      };
    }
    for (const button of document.querySelectorAll("[data-reset]")) button.onclick = () => this.send(button.dataset.reset);
  }

  welcome(rights) {
    this.rights = rights;
    show($("login"), rights.control && !rights.allowed);
    show($("commands"), rights.control && rights.allowed);
    for (const note of document.querySelectorAll("[data-bounds]")) note.textContent = (rights.bounds[note.dataset.bounds] ?? []).join(" to ");
    this.note();
  }

  select(run) {
    this.run = run;
    this.say("");
    this.paint([]);
  }

  state(state) {
    this.current = state;
    const live = state.obeys;
    for (const button of document.querySelectorAll("#commands button")) button.disabled = !live;
    const set = (name) => document.querySelector(`[data-do="${name}"]`);
    set("pause").disabled = !live || state.paused;
    set("resume").disabled = !live || !state.paused;
    this.note();
  }

  note() {
    const { control, allowed } = this.rights;
    let text = "";
    if (!control) text = "This dashboard is read only; start it with --control to allow commands.";
    else if (!allowed) text = "Commands need the token that was printed when the dashboard started.";
    else if (this.current && !this.current.obeys) text = this.current.doing === "ended" ? "This run has ended." : "This run does not answer.";
    const changed = Object.entries(this.current?.overrides ?? {}).map(([name, value]) => `${name} is held at ${number(value)}`);
    $("control-note").textContent = [text, ...changed].filter(Boolean).join(" ");
  }

  say(text, bad = false) {
    $("said").textContent = text;
    $("said").classList.toggle("bad", bad);
  }

  async send(what, value = null) {
    try {
      const answer = await this.link.ask({ type: "do", run: this.run, what, value, name: $("who").value.trim().slice(0, 40) });
      if (answer.ok) { this.pending.set(answer.id, what); this.say(`${what}: sent, the run answers after its update`); }
      else this.say(`${what}: ${answer.message}`, true);
    } catch (error) { this.say(`${what}: ${error.message}`, true); }
  }

  async load() {
    const run = this.run;
    const answer = await this.link.ask({ type: "part", run, what: "answers" });
    if (run === this.run && !answer.missing) this.paint(answer.answers);
  }

  paint(answers) {
    $("answer-rows").replaceChildren(...answers.slice().reverse().map((row) => {
      const what = row.what + (row.what === "entropy" || row.what === "lr" ? ` = ${row.value === null ? "schedule" : row.value}` : "");
      return make("tr", { "data-id": row.id }, make("td", {}, clock(row.when)), make("td", { class: "text" }, row.who), make("td", { class: "text" }, what),
        make("td", { class: "text" }, `${row.result}: ${row.message}`), make("td", {}, number(row.global_step)));
    }));
    show($("answers-none"), answers.length === 0);
    for (const row of answers) if (this.pending.delete(row.id)) this.say(`${row.what}: ${row.message}`, row.result !== "done");
  }
}
