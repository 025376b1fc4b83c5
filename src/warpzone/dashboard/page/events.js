// Alerts of a run, and how its environments were made.

import { $, clock, make, number, show } from "./dom.js";

export class Events {
  constructor(link) {
    this.link = link;
    this.events = [];
    $("event-kind").onchange = () => this.paint();
  }

  select(run) {
    this.run = run;
    this.events = [];
    this.paint();
  }

  async load() {
    const run = this.run;
    const answer = await this.link.ask({ type: "part", run, what: "events" });
    if (run !== this.run || answer.missing) return;
    this.events = answer.events.sort((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0));
    this.paint();
  }

  paint() {
    const kinds = [...new Set(this.events.map((row) => String(row.kind)))].sort();
    const options = [...$("event-kind").options].slice(1).map((option) => option.value);
    if (kinds.join() !== options.join()) {
      const kept = kinds.includes($("event-kind").value) ? $("event-kind").value : "";
      $("event-kind").replaceChildren(make("option", { value: "" }, "all"), ...kinds.map((kind) => make("option", {}, kind)));
      $("event-kind").value = kept;
    }
    const kind = $("event-kind").value;
    const rows = this.events.filter((row) => !kind || row.kind === kind).reverse();
    $("event-rows").replaceChildren(...rows.map((row) => make("tr", {}, make("td", {}, clock(row.timestamp)), make("td", { class: "text" }, String(row.kind)),
      make("td", { class: "text" }, String(row.text)), make("td", {}, number(row.global_step)))));
    show($("events-none"), rows.length === 0);
  }
}
