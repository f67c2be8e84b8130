// What the scripts of onramp's pages share: httpd puts it in place of their mark.
const at = (id) => document.getElementById(id);
const short = (n) => n === null || n === undefined ? "-" : n >= 1e9 ? (n / 1e9).toFixed(1) + "G" :
  n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? (n / 1e3).toFixed(1) + "k" :
  n >= 100 || Number.isInteger(n) ? n.toFixed(0) : n.toFixed(2);
const bytes = (n) => n >= 2 ** 30 ? (n / 2 ** 30).toFixed(1) + " GiB" :
  n >= 2 ** 20 ? (n / 2 ** 20).toFixed(1) + " MiB" : (n / 1024).toFixed(0) + " KiB";
const percent = (n) => (n * 100).toFixed(0) + " %";
const make = (name, text, kind) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
const tiles = (id, list) => at(id).replaceChildren(...list.map(([name, value, bad]) => {
  const tile = make("div", undefined, bad ? "tile bad" : "tile");
  tile.append(make("b", value), make("span", name));
  return tile;
}));
// A line over a field of 300 by 80, with its name and its last and largest value.
const figureOf = (name, values, place, write) => {
  const top = values.reduce((a, b) => Math.max(a, b), 1e-9);
  const figure = make("figure"), caption = make("figcaption");
  caption.append(make("span", name), make("span",
    values.length ? write(values[values.length - 1]) + ", at most " + write(top > 1e-9 ? top : 0) : "-"));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 300 80");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", caption.textContent);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", values.map((value, i) => place(i).toFixed(1) + "," +
    (77 - value / top * 74).toFixed(1)).join(" "));
  svg.append(line);
  figure.append(caption, svg);
  return figure;
};
// What the kernel counts of the host, and what a page has to say of it besides.
const hostTiles = (h, ...more) => tiles("host", [
  ["CPU of all programs", percent(h.cpu_share), h.cpu_share > 0.95],
  ...more,
  ["TCP sockets open", short(h.tcp_open)],
  ["in TIME_WAIT", short(h.tcp_time_wait)],
  ["of nobody", short(h.tcp_orphans)],
  ["memory of TCP", bytes(h.tcp_memory_bytes)],
  ["segments sent/s", short(h.segments_out)],
  ["sent again/s", short(h.retransmits), h.retransmits > 0],
  ["dropped by listeners/s", short(h.listen_drops), h.listen_drops > 0],
  ["packets dropped/s", short(h.packet_drops), h.packet_drops > 0],
]);
