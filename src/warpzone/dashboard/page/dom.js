// Elements, numbers as people read them, and what the page remembers. Text from a run is only ever
// put into the page as text.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function show(element, visible) {
  element.hidden = !visible;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(digits + (size >= 1000 ? 1 : 0))));
}

export const percent = (value) =>
  value === null || value === undefined || !Number.isFinite(value) ? "–" : (100 * value).toFixed(1) + " %";

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  const [days, hours] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24];
  const rest = [Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, "0"));
  return days ? `${days} d ${hours} h` : `${hours}:${rest.join(":")}`;
}

export function bytes(size) {
  return size >= 1e6 ? (size / 1e6).toFixed(1) + " MB" : size >= 1e3 ? (size / 1e3).toFixed(0) + " KB" : size + " B";
}

export const clock = (seconds) => new Date(1000 * seconds).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });

// A browser may keep no storage for this page; it then forgets, and that is all.
export function remember(key, value) {
  try { localStorage.setItem("warpzone." + key, JSON.stringify(value)); } catch { /* forgotten */ }
}
export function recall(key, otherwise) {
  try {
    const text = localStorage.getItem("warpzone." + key);
    return text === null ? otherwise : JSON.parse(text);
  } catch { return otherwise; }
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Told apart by people who see few colours, too (Okabe and Ito).
export const RUN_COLORS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];
