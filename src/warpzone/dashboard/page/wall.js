// Lanes at play: a clip of the newest steps arrives with every update and is played until the next.

import { $, make, number, recall, remember, show } from "./dom.js";

export class Wall {
  constructor(changed) {
    this.changed = changed;
    this.on = recall("wall", true);
    this.visible = false;
    this.cells = [];
    this.clip = null;
    this.gap = 1000;
    this.shown = 0;
    this.game = recall("wall-as", "network") === "game";
    this.film = null;
    $("wall-as").value = this.game ? "game" : "network";
    $("wall-as").onchange = () => { this.game = $("wall-as").value === "game"; remember("wall-as", $("wall-as").value); changed(); };
    $("wall-switch").onclick = () => { this.on = !this.on; remember("wall", this.on); this.button(); changed(); };
    new IntersectionObserver(([entry]) => { this.visible = entry.isIntersecting; changed(); }, { rootMargin: "150px" }).observe($("wall"));
    this.button();
  }

  wanted() {
    return this.on && this.visible && !document.hidden;
  }

  button() {
    $("wall-switch").setAttribute("aria-pressed", String(this.on));
    $("wall-switch").textContent = this.on ? "on" : "off";
  }

  // A run that is over plays no more: the video of its best weights is shown instead.
  async ended(run, link) {
    if (run === this.film) return;
    this.film = run;
    if (run === null) return;
    const name = "best.mp4";
    try {
      const token = link.token();
      const answer = await fetch(`/video/${run}/${name}`, token ? { headers: { authorization: `Bearer ${token}` } } : {});
      if (run !== this.film || this.clip) return;
      $("wall-none").textContent = "The run is over, and has no video of its best weights.";
      if (!answer.ok) return;
      const video = make("video", { src: URL.createObjectURL(await answer.blob()), controls: "", muted: "", loop: "", "aria-label": name });
      $("lanes").replaceChildren(video);
      $("wall-note").textContent = "the run is over; its best weights at play";
      show($("wall-none"), false);
    } catch { /* the connection comes back */ }
  }

  clear() {
    this.clip = null;
    this.film = null;
    $("wall-none").textContent = "No pictures yet. They come with the next update of a live run.";
    this.cells = [];
    $("lanes").replaceChildren();
    $("wall-note").textContent = "";
    show($("wall-none"), true);
  }

  async take(message) {
    const [steps, lanes, height, width] = message.shape;
    const packed = new Blob([new Uint8Array(message.buffer, message.offset)]);
    const pixels = new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
    const colors = message.colors ?? 1;
    if (pixels.length !== steps * lanes * height * width * colors) return;
    $("lanes").classList.toggle("game", colors === 3);
    if (this.cells.length !== lanes || this.cells[0].canvas.width !== width) this.build(lanes, width, height);
    const now = performance.now();
    if (this.arrived) this.gap = Math.min(20000, now - this.arrived);
    this.arrived = now;
    this.clip = { ...message, pixels, began: now, last: -1, pace: Math.max(1000 / 60, Math.min(1000 * message.step_seconds, this.gap / steps)) };
    $("lanes").dataset.number = message.number;
    const seen = colors === 3 ? "as the game shows them, one picture each update" : "as the network sees them";
    $("wall-note").textContent = `update ${number(message.update)}, ${lanes} lanes ${seen}`;
    show($("wall-none"), false);
    if (!this.playing) { this.playing = true; requestAnimationFrame((time) => this.play(time)); }
  }

  build(lanes, width, height) {
    this.cells = Array.from({ length: lanes }, () => {
      const canvas = make("canvas", { width, height, role: "img", "aria-label": "A lane at play" });
      const [place, action] = [make("span"), make("span")];
      const element = make("figure", {}, canvas, make("figcaption", {}, place, action));
      const pen = canvas.getContext("2d");
      return { canvas, place, action, element, pen, image: pen.createImageData(width, height) };
    });
    $("lanes").replaceChildren(...this.cells.map((cell) => cell.element));
  }

  play(time) {
    const clip = this.clip;
    if (!clip || !this.wanted()) { this.playing = false; return; }
    const step = Math.min(clip.shape[0] - 1, Math.max(0, Math.floor((time - clip.began) / clip.pace)));
    if (step !== clip.last) {
      clip.last = step;
      this.draw(clip, step);
      $("lanes").dataset.pictures = ++this.shown;
    }
    if (step === clip.shape[0] - 1) { this.playing = false; return; }
    requestAnimationFrame((next) => this.play(next));
  }

  draw(clip, step) {
    const [, lanes, height, width] = clip.shape;
    const size = height * width;
    for (let lane = 0; lane < lanes; lane++) {
      const cell = this.cells[lane];
      const target = new Uint32Array(cell.image.data.buffer);
      const from = (step * lanes + lane) * size;
      const { pixels } = clip;
      if (clip.colors === 3) for (let i = 0, at = 3 * from; i < size; i++, at += 3) target[i] = 0xff000000 | (pixels[at + 2] << 16) | (pixels[at + 1] << 8) | pixels[at];
      else for (let i = 0; i < size; i++) target[i] = 0xff000000 | (pixels[from + i] * 0x010101);
      cell.pen.putImageData(cell.image, 0, 0);
      const { stage, lane: name } = clip.lanes[lane];
      cell.place.textContent = `${stage} · ${name}`;
      cell.action.textContent = clip.names[clip.actions[step]?.[lane]] ?? "";
    }
  }
}
