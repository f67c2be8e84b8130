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
// The largest value of a chart's scale: a few spikes do not flatten all others. They are cut, and marked.
const scaleOf = (values) => {
  const sorted = [...values].sort((a, b) => a - b), largest = sorted[sorted.length - 1] || 0;
  const usual = sorted[Math.floor((sorted.length - 1) * 0.97)] || 0;
  return usual > 0 && largest > usual * 4 ? usual * 1.5 : Math.max(largest, 1e-9);
};
// Where the pointer is over a chart, as a share of its width, or null.
let pointer = null;
const drawing = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
// A line over a field of 300 by 80: values at these times, the last `span` seconds of them. `clock`
// writes a time, `write` a value.
const figureOf = (name, times, values, span, clock, write) => {
  const end = times.length ? times[times.length - 1] : 0, top = scaleOf(values);
  const x = (time) => 300 - (end - time) / span * 300, largest = values.length ? Math.max(...values) : 0;
  const is_cut = largest > top;
  const figure = make("figure"), caption = make("figcaption"), field = make("div", undefined, "field");
  let near = values.length - 1;
  if (pointer !== null && values.length) {
    const time = end - (1 - pointer) * span;
    times.forEach((t, i) => { if (Math.abs(t - time) < Math.abs(times[near] - time)) near = i; });
  }
  caption.append(make("span", name), make("span", !values.length ? "-" : pointer === null ?
    write(values[near]) + ", at most " + write(largest) : clock(times[near]) + ": " + write(values[near]), "value"));
  const svg = drawing("svg", { viewBox: "0 0 300 80", preserveAspectRatio: "none", role: "img",
    "aria-label": name + ": " + caption.lastChild.textContent });
  for (const share of [0.25, 0.5, 0.75])
    svg.append(drawing("line", { class: "grid", x1: share * 300, x2: share * 300, y1: 0, y2: 80 }));
  svg.append(drawing("line", { class: "grid", x1: 0, x2: 300, y1: 40, y2: 40 }));
  const y = (value) => 78 - Math.min(value / top, 1) * 76;
  svg.append(drawing("polyline", { points: values.map((value, i) =>
    x(times[i]).toFixed(1) + "," + y(value).toFixed(1)).join(" ") }));
  if (pointer !== null && values.length)
    svg.append(drawing("line", { class: "cursor", x1: x(times[near]), x2: x(times[near]), y1: 0, y2: 80 }));
  field.append(svg, make("span", write(top), "top"), make("span", write(top / 2), "middle"));
  // One mark for cuts that stand together.
  let last = -10;
  if (is_cut) values.forEach((value, i) => {
    const place = x(times[i]) / 3;
    if (value <= top || place < last + 2) return;
    last = place;
    const mark = make("span", "\u25b2", "cut");
    mark.style.left = place.toFixed(1) + "%";
    mark.title = write(value);
    field.append(mark);
  });
  const axis = make("div", undefined, "axis");
  axis.append(...[1, 0.5, 0].map((share) => make("span", clock(end - share * span))));
  figure.append(caption, field, axis);
  return figure;
};
// Has `draw` draw anew, with values, while the pointer is over a chart of those in `id`.
const readCharts = (id, draw) => {
  const move = (event) => {
    const field = event.target.closest(".field"), before = pointer;
    const box = field && field.getBoundingClientRect();
    pointer = field ? Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) : null;
    if (pointer !== before) draw();
  };
  at(id).addEventListener("pointermove", move);
  at(id).addEventListener("pointerdown", move);
  at(id).addEventListener("pointerleave", () => { pointer = null; draw(); });
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
