"use strict";
// One document of results in, one page out. No library: a few scales, axes and marks in SVG.
const doc = JSON.parse(document.getElementById("data").textContent);
// Schemes that ran; of a fleet each has its distributions, of a sweep the number of its cells.
const runs = doc.results.filter((r) => r.counters || r.write_amplification || r.ran);
const hidden = new Set();
const redraws = [];
const NS = "http://www.w3.org/2000/svg";

// ---- small helpers ----
const get = (o, path) => path.split("/").reduce((v, k) => (v == null ? v : v[k]), o);
const el = (tag, attributes = {}, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => make(document.createElementNS(NS, tag), attributes, children);
function make(node, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== false) node.setAttribute(k, v);
  }
  node.append(...children.flat().filter((c) => c != null));
  return node;
}
const sum = (xs) => xs.reduce((a, b) => a + b, 0);
const shown = () => runs.filter((r) => !hidden.has(r.scheme));
const colour = (r) => `var(--c${runs.indexOf(r) % 7})`;
// Seven colours that colour-blind readers tell apart; the next seven schemes have them dashed.
const dash = (r) => ["none", "7 4", "2 3"][Math.min(2, Math.floor(runs.indexOf(r) / 7))];
const digits = (x) => {
  if (x == null || !isFinite(x)) return "–";
  const a = Math.abs(x);
  if (a >= 99.95) return Math.round(x).toLocaleString("en");
  return a >= 9.995 ? x.toFixed(1) : a >= 0.9995 || a === 0 ? x.toFixed(2) : x.toPrecision(2);
};
const trim = (s) => (s.includes(".") ? s.replace(/\.?0+(?=\s|$)/, "") : s);
const unit = (x, base, names) => {
  if (x == null) return "–";
  let i = 0;
  while (Math.abs(x) >= base && i + 1 < names.length) { x /= base; i++; }
  return `${i === 0 && Number.isInteger(x) ? x : digits(x)} ${names[i]}`;
};
const count = (x) => (x == null ? "–" : Math.round(x).toLocaleString("en"));
const bytes = (x) => unit(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const micros = (x) => (x == null ? "–" : x >= 1e6 ? `${digits(x / 1e6)} s` : unit(x, 1000, ["µs", "ms"]));
const joules = (x) => unit(x, 1000, ["µJ", "mJ", "J", "kJ"]);

// ---- tooltip ----
const tip = document.getElementById("tip");
function showTip(event, text) {
  tip.textContent = text;
  tip.className = "on";
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - w - 8)}px`;
  tip.style.top = `${event.clientY + h + 24 > innerHeight ? event.clientY - h - 10 : event.clientY + 14}px`;
}
const hideTip = () => (tip.className = "");
function highlight(scheme) {
  for (const mark of document.querySelectorAll("[data-scheme]")) {
    const other = scheme && mark.dataset.scheme !== scheme;
    mark.classList.toggle("faded", Boolean(other));
    mark.classList.toggle("strong", Boolean(scheme) && !other && mark.classList.contains("line"));
  }
}

// ---- scales and axes ----
function linear(min, max, from, to) {
  if (!(max > min)) max = min + 1;
  const f = (v) => from + ((v - min) / (max - min)) * (to - from);
  const raw = (max - min) / 7, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  f.ticks = [];
  for (let k = Math.ceil(min / step); k * step <= max * 1.000001; k++) f.ticks.push(k * step);
  f.invert = (p) => min + ((p - from) / (to - from)) * (max - min);
  return f;
}
function logarithmic(min, max, from, to) {
  min = 10 ** Math.floor(Math.log10(min));
  max = 10 ** Math.ceil(Math.log10(Math.max(max, min * 1.01)));
  const l = Math.log10(min), h = Math.log10(max);
  const f = (v) => from + ((Math.log10(Math.max(v, min)) - l) / (h - l)) * (to - from);
  f.ticks = [];
  for (let e = l; e <= h + 1e-9; e++) f.ticks.push(10 ** e);
  f.invert = (p) => 10 ** (l + ((p - from) / (to - from)) * (h - l));
  return f;
}
function frame(host, height, x, y, formatX, formatY, labelX) {
  const w = host.clientWidth || 600, left = 62, bottom = 40, right = w - 12, top = 8;
  const sx = x(left, right), sy = y(height - bottom, top);
  const g = svg("svg", { viewBox: `0 0 ${w} ${height}`, height, role: "img" });
  for (const t of sy.ticks) {
    g.append(svg("line", { class: "gridline", x1: left, x2: right, y1: sy(t), y2: sy(t) }),
      svg("text", { x: left - 8, y: sy(t) + 4, "text-anchor": "end" }, trim(formatY(t))));
  }
  const every = Math.ceil(sx.ticks.length / (w / 80));
  sx.ticks.forEach((t, i) => {
    g.append(svg("line", { class: "gridline", x1: sx(t), x2: sx(t), y1: top, y2: height - bottom }));
    if (i % every === 0) g.append(svg("text", { x: sx(t), y: height - bottom + 17, "text-anchor": "middle" }, trim(formatX(t))));
  });
  g.append(svg("line", { class: "axis", x1: left, x2: right, y1: height - bottom, y2: height - bottom }),
    svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, labelX));
  host.replaceChildren(g);
  return { g, sx, sy, left, right, top, base: height - bottom };
}

/** Lines, one a run. `lines`: [{run, points: [[x, y]]}]; the nearest one to the pointer tells its value. */
function drawLines(host, lines, options) {
  lines = lines.map((l) => ({ ...l, points: l.points.filter((p) => p[1] != null && p[0] != null && isFinite(p[1])) })).filter((l) => l.points.length);
  if (!lines.length) return host.replaceChildren(el("p", { class: "sub" }, "Nothing to show."));
  const all = lines.flatMap((l) => l.points), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const lowest = (v) => v.filter((a) => a > 0).reduce((a, b) => Math.min(a, b), Infinity);
  const extent = (v) => [v.reduce((a, b) => Math.min(a, b)), v.reduce((a, b) => Math.max(a, b))];
  const axis = (kind, v, zero) => (a, b) => {
    if (typeof kind === "function") return kind(a, b);
    const [min, max] = extent(v);
    return kind === "log" && max > 0 ? logarithmic(lowest(v), max, a, b) : linear(zero ? Math.min(0, min) : min, max, a, b);
  };
  const f = frame(host, options.height || 320, axis(options.x, xs), axis(options.y, ys, true), options.formatX, options.formatY, options.labelX);
  for (const l of lines) {
    let d = "";
    l.points.forEach((p, i) => {
      const px = f.sx(p[0]).toFixed(1), py = f.sy(p[1]).toFixed(1);
      d += i === 0 ? `M${px} ${py}` : options.step ? `H${px}V${py}` : `L${px} ${py}`;
    });
    f.g.append(svg("path", { class: "line", d, stroke: colour(l.run), "stroke-dasharray": dash(l.run), "data-scheme": l.run.scheme }));
  }
  const dot = svg("circle", { r: 4, fill: "none", visibility: "hidden" });
  const near = (event) => {
    const box = f.g.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null;
    for (const l of lines) {
      for (const p of l.points) {
        const d = Math.hypot((f.sx(p[0]) - px) * 1.5, f.sy(p[1]) - py);
        if (!best || d < best.d) best = { d, l, p };
      }
    }
    highlight(best.l.run.scheme);
    make(dot, { cx: f.sx(best.p[0]), cy: f.sy(best.p[1]), fill: colour(best.l.run), visibility: "visible" }, []);
    showTip(event, `${best.l.run.scheme}\n${options.tell(best.p, best.l.run)}`);
  };
  const leave = () => { hideTip(); highlight(null); dot.setAttribute("visibility", "hidden"); };
  f.g.append(dot, svg("rect", { x: f.left, y: f.top, width: Math.max(0, f.right - f.left), height: f.base - f.top, fill: "transparent", onmousemove: near, onmouseleave: leave }));
}

/** Horizontal bars, one a run, each of parts [{name, value, colour}]. */
function drawBars(host, rows, format) {
  const w = host.clientWidth || 600, rowHeight = 25, left = 96, right = w - 92;
  const height = rows.length * rowHeight + 8;
  const max = Math.max(...rows.map((r) => sum(r.parts.map((p) => p.value))), 1e-12);
  const g = svg("svg", { viewBox: `0 0 ${w} ${height}`, height, role: "img" });
  rows.forEach((row, i) => {
    const y = i * rowHeight + 4, total = sum(row.parts.map((p) => p.value));
    let at = left;
    const group = svg("g", { "data-scheme": row.run.scheme }, svg("text", { class: "name", x: left - 10, y: y + 14, "text-anchor": "end" }, row.run.scheme));
    for (const part of row.parts.filter((p) => p.value > 0)) {
      const width = (part.value / max) * (right - left);
      const text = `${row.run.scheme}\n${part.name}: ${format(part.value)}` + (row.parts.length > 1 ? `\n${digits((part.value / total) * 100)} % of ${format(total)}` : "");
      group.append(svg("rect", { x: at, y, width: Math.max(width, 0.8), height: rowHeight - 7, rx: Math.min(2, width / 2), fill: part.colour,
        onmousemove: (e) => { showTip(e, text); highlight(row.run.scheme); }, onmouseleave: () => { hideTip(); highlight(null); } }));
      at += width;
    }
    group.append(svg("text", { class: "value", x: at + 7, y: y + 14 }, format(total)));
    g.append(group);
  });
  host.replaceChildren(g);
}

// ---- cards ----
function card(title, sub, draw, options = {}) {
  const bar = el("div", { class: "bar" }), host = el("div"), keys = el("div", { class: "keys" });
  const section = el("section", { class: options.wide ? "wide" : "" }, bar, el("h2", {}, title), el("p", { class: "sub" }, sub), keys, host);
  document.getElementById("charts").append(section);
  const state = {};
  const redraw = () => { draw(host, state); svgLabel(host, title); };
  for (const [name, choices] of Object.entries(options.choices || {})) {
    state[name] = choices[0][0];
    if (choices.length > 4 || options.selects) {
      bar.append(el("select", { "aria-label": name, onchange: (e) => { state[name] = e.target.value; redraw(); } }, choices.map(([v, text]) => el("option", { value: v }, text))));
      continue;
    }
    const buttons = choices.map(([v, text]) => el("button", { type: "button", class: v === state[name] ? "on" : "", onclick: (e) => {
      state[name] = v;
      buttons.forEach((b) => b.classList.toggle("on", b === e.currentTarget));
      redraw();
    } }, text));
    bar.append(...buttons);
  }
  for (const [text, c] of options.keys || []) keys.append(el("span", {}, el("i", { style: `background:${c}` }), text));
  redraws.push(redraw);
}
function svgLabel(host, title) {
  const graphic = host.querySelector("svg");
  if (graphic) graphic.setAttribute("aria-label", title);
}
const redrawAll = () => redraws.forEach((r) => r());

// ---- around the charts ----
const swatch = (r) => el("span", { class: "swatch" + (dash(r) === "none" ? "" : " dash"), style: `border-color:${colour(r)}` });
function legend() {
  const nav = document.getElementById("legend");
  if (runs.length < 2) return nav.remove();
  const buttons = runs.map((r) => el("button", { type: "button", title: r.title, onmouseenter: () => highlight(r.scheme), onmouseleave: () => highlight(null), onclick: (e) => {
    hidden.has(r.scheme) ? hidden.delete(r.scheme) : hidden.add(r.scheme);
    e.currentTarget.classList.toggle("off", hidden.has(r.scheme));
    redrawAll();
  } }, swatch(r), r.scheme));
  const all = el("button", { type: "button", onclick: () => {
    const hide = hidden.size === 0;
    runs.forEach((r) => (hide ? hidden.add(r.scheme) : hidden.delete(r.scheme)));
    buttons.forEach((b) => b.classList.toggle("off", hide));
    redrawAll();
  } }, "all / none");
  nav.append(...buttons, all);
}

function configuration() {
  const host = document.getElementById("configuration");
  const rows = (o) => Object.entries(o).filter(([, v]) => v !== undefined).map(([k, v]) => el("tr", {}, el("td", {}, k), el("td", {}, Array.isArray(v) ? v.join(", ") || "none" : String(v))));
  const block = (title, o) => host.append(el("div", {}, el("h3", {}, title), el("table", {}, el("tbody", {}, rows(o)))));
  Object.entries(doc.configuration).forEach(([name, o]) => block(`[${name}]`, o));
  block("trace", { name: doc.trace.name, format: doc.trace.format, ...doc.trace.counts });
  runs.filter((r) => r.options && Object.keys(r.options).length).forEach((r) => block(`[schemes.${r.scheme}]`, r.options));
}

// Options of the command in a note stay on one line.
const noteText = (n) => n.split(/(--set [^\s)]+)/).map((part, i) => (i % 2 ? el("code", {}, part) : part));

/** Everything but table and charts, and then the first drawing. `title` and `trace` stand at the top. */
function page(title, trace) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.classList.toggle("dark", dark.matches);
  document.getElementById("theme").onclick = () => document.documentElement.classList.toggle("dark");
  document.getElementById("title").textContent = title;
  document.getElementById("trace").textContent = trace;
  document.getElementById("device").textContent = doc.device;
  document.getElementById("notes").append(...doc.notes.map((n) => el("p", {}, noteText(n))));
  document.querySelector("main").after(el("footer", {}, doc.program));
  legend();
  configuration();
  redrawAll();
  let pending;
  addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(redrawAll, 120); });
}
