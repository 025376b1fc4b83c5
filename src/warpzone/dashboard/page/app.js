// The page: which runs are chosen, and who is told about what is new.

import { runColor } from "./chart.js";
import { Curves } from "./curves.js";
import { $, duration, make, number, percent, recall, remember, show } from "./dom.js";
import { Events } from "./events.js";
import { Link } from "./link.js";
import { Episodes, Files, Log, Settings } from "./lists.js";
import { Operations } from "./operations.js";
import { Runs } from "./runs.js";
import { Stages } from "./stages.js";
import { Wall } from "./wall.js";

const MOST_COMPARED = 5;
const ALERT_SECONDS = 600;

const link = new Link({ welcome, news, wall: (message) => message && chosen && wall.take(message), lost, refused });
const curves = new Curves(link);
const stages = new Stages(link);
const episodes = new Episodes(link);
const log = new Log(link);
const events = new Events(link);
const files = new Files(link);
const settings = new Settings(link);
const operations = new Operations(link);
const wall = new Wall(() => watch());
const all = new Runs((id) => { choose(id); show($("body"), true); all.visible(false); });

const parts = { stages, episodes, log, events, checkpoints: files, answers: operations };
let runs = [];
let chosen = null;
// The address says what is on the screen: ?run=NAME&with=NAME,NAME.
const asked = new URLSearchParams(location.search);
let compared = asked.has("with") ? null : recall("compared", []);
let versions = {};
let watched = "";

// --- the connection ------------------------------------------------------------------------------
function state(name, text) {
  document.body.dataset.state = name;
  $("link").textContent = text;
}

function welcome(rights) {
  state("connected", "connected");
  show($("notice"), false);
  operations.welcome(rights);
  versions = {};
  watched = "";
  watch();
}

function lost() {
  state("lost", "reconnecting …");
}

function refused(reason) {
  state("refused", "refused");
  const waits = reason.startsWith("too many wrong tokens");
  $("notice").textContent = reason === "wrong token" ? "That token is not the right one." : waits
    ? "Wrong tokens came from this address; the server looks at tokens again in a minute." : reason.includes("token")
    ? "This dashboard needs its token: open the address that was printed when it started." : `The server closed the connection: ${reason}`;
  show($("notice"), true);
  if (reason.includes("needs its token")) askToken();
}

function askToken() {
  if ($("ask")) return;
  const field = make("input", { type: "password", "aria-label": "Token", autocomplete: "off", maxlength: "200" });
  const form = make("form", { id: "ask", class: "row" }, field, make("button", { type: "submit" }, "look"));
  form.onsubmit = (event) => { event.preventDefault(); link.token(field.value.trim()); form.remove(); link.reconnect(); };
  $("notice").after(form);
}

function watch() {
  const ids = selection().map((run) => run.id);
  const message = { type: "watch", runs: ids, wall: wall.wanted(), screens: wall.wanted() && wall.game };
  if (JSON.stringify(message) === watched || !link.open) return;
  watched = JSON.stringify(message);
  link.say(message);
}

// --- the runs ------------------------------------------------------------------------------------
function selection() {
  if (chosen === null) return [];
  const others = runs.filter((run) => compared.includes(run.id) && run.id !== chosen);
  return runs.filter((run) => run.id === chosen).concat(others).slice(0, MOST_COMPARED + 1);
}

function listRuns(found) {
  const shape = (list) => list.map((run) => run.id + run.name + run.state).join();
  const changed = shape(found) !== shape(runs);
  runs = found;
  show($("empty"), runs.length === 0);
  all.paint(runs);
  if (compared === null) {
    const others = asked.get("with").split(",");
    compared = runs.filter((run) => others.includes(run.name)).map((run) => run.id);
  }
  if (!changed) { place(); return; }
  $("run").replaceChildren(...runs.map((run) => make("option", { value: run.id }, `${run.name} (${run.state})`)));
  if (runs.length > 1) $("run").prepend(make("option", { value: "" }, "all runs"));
  if (!runs.some((run) => run.id === chosen)) {
    // One run is shown at once; of several, the one that the address names, or all.
    const named = runs.find((run) => run.name === asked.get("run"));
    choose((named ?? (runs.length === 1 ? runs[0] : null))?.id ?? null);
  }
  place();
  $("run").value = chosen ?? "";
  $("compare-list").replaceChildren(...(runs.length > 1 ? runs.map(compareBox) : [make("span", { class: "quiet" }, "There is one run only.")]));
}

// Which page is on the screen: all runs, or one of them.
function place() {
  all.visible(runs.length > 1 && chosen === null);
  show($("body"), runs.length > 0 && chosen !== null);
  show($("sections"), chosen !== null);
}

// The address as the page is, so that it can be kept and sent. The part after # is left alone.
function address() {
  const query = new URLSearchParams();
  const name = (id) => runs.find((run) => run.id === id)?.name;
  if (chosen !== null && name(chosen)) query.set("run", name(chosen));
  const others = selection().slice(1).map((run) => run.name);
  if (others.length) query.set("with", others.join(","));
  const text = String(query);
  history.replaceState(null, "", location.pathname + (text ? "?" + text : "") + location.hash);
}

function compareBox(run) {
  const box = make("input", { type: "checkbox", value: run.id });
  box.checked = compared.includes(run.id) || run.id === chosen;
  box.disabled = run.id === chosen;
  box.onchange = () => {
    compared = box.checked ? [...compared, run.id].slice(-MOST_COMPARED) : compared.filter((id) => id !== run.id);
    remember("compared", compared);
    compare();
  };
  return make("label", {}, box, run.name);
}

function choose(id) {
  chosen = id;
  versions = {};
  $("run").value = id ?? "";
  document.title = "warpzone";
  if (id === null) { place(); compare(); return; }
  for (const part of Object.values(parts)) part.select(id);
  wall.clear();
  compare();
  place();
  for (const box of document.querySelectorAll("#compare-list input")) {
    box.disabled = box.value === id;
    box.checked = compared.includes(box.value) || box.value === id;
  }
}

function compare() {
  const list = selection();
  versions = {};
  address();
  curves.choose(list);
  settings.choose(list).catch(() => {});
  watch();
}

// --- news ----------------------------------------------------------------------------------------
function news(message) {
  if (message.runs) listRuns(message.runs);
  watch();
  const mine = message.watched.find((run) => run.id === chosen);
  if (!mine) return;
  overview(mine);
  operations.state(mine.state);
  split(mine.last);
  for (const [name, part] of Object.entries(parts)) {
    if (mine.versions[name] !== versions[name]) part.load().catch(() => {});
  }
  const numbers = message.watched.map((run) => `${run.id}${run.versions.metrics}`).join();
  if (numbers !== versions.numbers) {
    if (mine.versions.metrics) names();
    curves.fetch();
  }
  versions = { ...mine.versions, numbers };
}

async function names() {
  const run = chosen;
  try {
    const answer = await link.ask({ type: "part", run, what: "names" });
    if (!answer.missing && run === chosen) curves.offer(answer.metrics);
  } catch { /* the connection comes back, and asks again */ }
}

function overview(run) {
  const row = runs.find((one) => one.id === run.id);
  const { last } = run;
  const total = row?.config.max_steps;
  const minutes = row?.config.max_time;
  const ended = run.state.doing === "ended";
  const steps = total && last.global_step ? Math.min(1, last.global_step / total) : 0;
  // A run ends by its steps, by its time, or because it has reached what it was to reach.
  const done = ended ? 1 : Math.min(1, Math.max(steps, minutes && last.seconds ? last.seconds / (60 * minutes) : 0));
  wall.ended(ended ? run.id : null, link);
  $("title").textContent = row?.name ?? "";
  const doing = run.state.doing + (run.state.reason && run.state.reason !== "normal" ? ` (${run.state.reason})` : "");
  $("badge").textContent = doing;
  $("badge").className = "badge " + (run.state.paused ? "paused" : run.state.obeys ? "running" : run.state.doing);
  document.title = `${row?.name ?? "warpzone"} · ${percent(last.clear_rate)} cleared`;
  $("progress-bar").style.width = 100 * done + "%";
  $("progress").setAttribute("aria-valuenow", Math.round(100 * done));
  const tiles = [
    ["steps", number(last.global_step), total ? `${percent(steps)} of ${number(total)}` : ""],
    ["updates", number(last.update), `${number(last.updates_per_sec)} a second`],
    ["speed, steps/s", number(last.env_steps_per_sec), `last update; whole run ${number(last.global_step / last.seconds)}`],
    ["time", duration(last.seconds), ended ? "" : `${duration(last.eta)} to go`],
    ["clear rate", percent(last.clear_rate), "of the last episodes"],
    ["return, median", number(last.recent_return_p50), `mean ${number(last.avg_return)}, p90 ${number(last.recent_return_p90)}`],
    ["furthest x, recent", number(last.env_max_x_pos), `mean ${number(last.env_mean_x_pos)}`],
    ["episodes", number(run.episodes), row?.config.stages ?? ""],
  ];
  warn(run);
  $("tiles").replaceChildren(...tiles.map(([name, value, more]) => {
    const shown = make("dd", { "data-tile": name }, value, make("small", { title: more }, more));
    return make("div", {}, make("dt", {}, name), shown);
  }));
}

/** Says loudly what keeps a run from learning: an alert, steps that nobody chose, or the last hint. */
function warn(run) {
  const { last, hint, alert } = run;
  const alarm = alert?.text && Date.now() / 1000 - alert.timestamp < ALERT_SECONDS ? `Alert: ${alert.text}.` : "";
  const forced = last.forced_share >= 0.9
    ? `${percent(last.forced_share)} of the newest steps were forced by a script: the policy learns nearly nothing from them.` : "";
  const recent = hint?.text && last.update - hint.update < 200 ? hint.text : "";
  $("warning").textContent = [alarm, forced, recent].filter(Boolean).join(" ");
  $("warning").hidden = !alarm && !forced && !recent;
}

function split(last) {
  const shares = Object.entries(last).filter(([name, value]) => name.startsWith("time_") && value > 0);
  const total = shares.reduce((sum, [, value]) => sum + value, 0);
  const legend = [];
  $("split").replaceChildren(...shares.map(([name, value], index) => {
    const piece = make("i", { title: `${name.slice(5)} ${percent(value / total)}` });
    piece.style.width = (100 * value) / total + "%";
    piece.style.background = runColor(index);
    const key = make("span", { class: "key" }, `${name.slice(5)} ${percent(value / total)}`);
    key.style.setProperty("--key", runColor(index));
    legend.push(key);
    return piece;
  }));
  $("split-legend").replaceChildren(...legend);
}

// --- the rest ------------------------------------------------------------------------------------
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  curves.charts.forEach((chart) => chart.redraw());
  stages.paint();
  stages.drawEnds();
}

$("theme").onclick = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  remember("theme", next);
  theme(next);
};
$("run").onchange = () => choose($("run").value || null);
$("home").onclick = (event) => { if (runs.length > 1) { event.preventDefault(); choose(null); } };
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !$("compare").open) return;
  $("compare").open = false;
  $("compare").querySelector("summary").focus();
});
document.addEventListener("visibilitychange", () => { watch(); curves.fetch(); });
document.addEventListener("click", (event) => { if (!$("compare").contains(event.target)) $("compare").open = false; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(null));
theme(recall("theme", null));
link.connect();
