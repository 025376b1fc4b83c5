// The socket: says hello, asks and is answered, acknowledges every push, and comes back by itself.

const TOKEN = "warpzone.token";
// Milliseconds between tries while the server refuses to look at tokens.
const WAIT = 15000;

export class Link {
  constructor(on) {
    this.on = on;
    this.waiting = new Map();
    this.next = 1;
    this.delay = 500;
    this.open = false;
    this.takeToken();
  }

  takeToken() {
    const found = /^#token=([\w-]+)$/.exec(location.hash);
    if (found) {
      sessionStorage.setItem(TOKEN, found[1]);
      history.replaceState(null, "", location.pathname);
    }
  }

  token(value) {
    if (value === undefined) return sessionStorage.getItem(TOKEN) || "";
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
    return value;
  }

  connect() {
    clearTimeout(this.timer);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws`);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", token: this.token() }));
    socket.onmessage = (event) => this.heard(event.data);
    socket.onclose = (event) => socket === this.socket && this.closed(event);
  }

  reconnect() {
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.drop();
    this.connect();
  }

  drop() {
    this.open = false;
    for (const { reject } of this.waiting.values()) reject(new Error("the connection was lost"));
    this.waiting.clear();
  }

  closed(event) {
    this.drop();
    if (event.code === 1008) {
      const hadToken = this.token() !== "";
      if (event.reason === "wrong token") this.token("");
      this.on.refused(event.reason);
      // Looking may need none.
      if (event.reason === "wrong token" && hadToken) this.timer = setTimeout(() => this.connect(), 500);
      // Somebody guessed, and this token was not looked at: it may be the right one, so it is kept.
      else if (event.reason.startsWith("too many wrong tokens")) this.timer = setTimeout(() => this.connect(), WAIT);
      else if (!event.reason.includes("token")) this.timer = setTimeout(() => this.connect(), 5000);
      return;
    }
    this.on.lost();
    this.timer = setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(8000, this.delay * 1.6);
  }

  heard(data) {
    const message = typeof data === "string" ? JSON.parse(data) : unpack(data);
    if (message.type === "welcome") {
      this.open = true;
      this.delay = 500;
      this.on.welcome(message);
    } else if (message.request !== undefined) {
      this.waiting.get(message.request)?.resolve(message);
      this.waiting.delete(message.request);
    } else if (message.type === "news" || message.type === "wall") {
      this.say({ type: "ack" });
      this.on[message.type](message);
    }
  }

  say(message) {
    if (this.open && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  ask(message) {
    return new Promise((resolve, reject) => {
      if (!this.open) return reject(new Error("not connected"));
      const request = this.next++;
      this.waiting.set(request, { resolve, reject });
      this.say({ ...message, request });
    });
  }
}

function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  return { ...header, buffer, offset: 4 + size };
}
