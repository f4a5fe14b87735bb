"use strict";
// One document of results in, one page out. No library: a few scales, axes and marks in SVG.
const doc = JSON.parse(document.getElementById("data").textContent);
// Schemes that ran; of a fleet each has its distributions, of a sweep the number of its cells.
const runs = (doc.results || []).filter((r) => r.counters || r.write_amplification || r.ran);
const hidden = new Set();
// Lines of more than a handful of schemes cannot be told apart.
const FEW = 5, SANE = 1000;
function preselect() {
  const mean = (r) => get(r, "time/response/all/mean_us");
  const ranked = runs.filter((r) => mean(r) > 0).sort((a, b) => mean(a) - mean(b));
  const sane = ranked.filter((r) => mean(r) <= SANE * mean(ranked[0]));
  if (runs.length <= FEW + 1 || sane.length <= 1) return;
  const last = sane.length - 1, picked = new Set([...Array(FEW).keys()].map((i) => sane[Math.round((i * last) / (FEW - 1))]));
  runs.filter((r) => !picked.has(r)).forEach((r) => hidden.add(r.scheme));
}
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

/** The axis that shows only the part of another one between two shares of its length. */
function partOf(scale, [from, to], kind) {
  return (a, b) => {
    const f = scale(a - (from * (b - a)) / (to - from), b + ((1 - to) * (b - a)) / (to - from)), low = Math.min(a, b), high = Math.max(a, b);
    f.ticks = f.ticks.filter((t) => f(t) > low - 1e-6 && f(t) < high + 1e-6);
    // Values that are words have nothing between them.
    if (f.ticks.length < 3 && typeof kind !== "function") f.ticks = linear(f.invert(a), f.invert(b), a, b).ticks;
    return f;
  };
}
/** A box drawn over a chart calls `choose` with the shares of both axes that it spans; a double click with none. */
function zoomable(f, over, choose) {
  const box = svg("rect", { class: "zoom", visibility: "hidden" });
  let from = null;
  const at = (event) => {
    const edge = f.g.getBoundingClientRect(), inside = (v, low, high) => Math.min(high, Math.max(low, v));
    return [inside(event.clientX - edge.left, f.left, f.right), inside(event.clientY - edge.top, f.top, f.base)];
  };
  const sides = ([x, y]) => ({ x: Math.min(x, from[0]), y: Math.min(y, from[1]), width: Math.abs(x - from[0]), height: Math.abs(y - from[1]) });
  make(over, {
    onpointerdown: (event) => { if (event.button !== 0) return; from = at(event); over.setPointerCapture(event.pointerId); },
    onpointermove: (event) => from && make(box, { ...sides(at(event)), visibility: "visible" }, []),
    onpointercancel: () => { from = null; box.setAttribute("visibility", "hidden"); },
    onpointerup: (event) => {
      if (!from) return;
      const { x, y, width, height } = sides(at(event));
      from = null;
      box.setAttribute("visibility", "hidden");
      // Less is a click, or a hand that shook.
      if (width < 6 && height < 6) return;
      const share = (v, low, high) => (v - low) / (high - low), whole = [0, 1];
      choose(width < 6 ? whole : [share(x, f.left, f.right), share(x + width, f.left, f.right)], height < 6 ? whole : [share(y + height, f.base, f.top), share(y, f.base, f.top)]);
    },
    ondblclick: () => choose(),
  }, []);
  f.g.append(box);
}
/** A part of a part, as shares of the whole. */
const inPart = ([from, to], [a, b]) => [from + a * (to - from), from + b * (to - from)];
let clips = 0;

/** Where a linear axis ends: one line far above all others must not press them flat. */
function ceiling(lines) {
  const tops = lines.map((l) => l.points.reduce((m, p) => Math.max(m, p[1]), 0)).sort((a, b) => a - b);
  const usual = tops[Math.floor((tops.length - 1) * 0.75)];
  return tops.length > 2 && tops[tops.length - 1] > 8 * usual && usual > 0 ? 2 * usual : Infinity;
}

/** Lines, one a run. `lines`: [{run, points: [[x, y]]}]; the nearest one to the pointer tells its value. `options.after` draws
 * more into the same place. A box drawn over the chart shows that part of it: `part`, shares of both axes. */
function drawLines(host, lines, options, part = [[0, 1], [0, 1]]) {
  lines = lines.map((l) => ({ ...l, points: l.points.filter((p) => p[1] != null && p[0] != null && isFinite(p[1])) })).filter((l) => l.points.length);
  if (!lines.length) return host.replaceChildren(el("p", { class: "sub" }, "Nothing to show."));
  const all = lines.flatMap((l) => l.points), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const lowest = (v) => v.filter((a) => a > 0).reduce((a, b) => Math.min(a, b), Infinity);
  const extent = (v) => [v.reduce((a, b) => Math.min(a, b)), v.reduce((a, b) => Math.max(a, b))];
  const cap = options.y === "linear" ? ceiling(lines) : Infinity;
  const axis = (kind, v, zero) => (a, b) => {
    if (typeof kind === "function") return kind(a, b);
    const [min, max] = extent(v);
    return kind === "log" && max > 0 ? logarithmic(lowest(v), max, a, b) : linear(zero ? Math.min(0, min) : min, zero ? Math.min(max, cap) : max, a, b);
  };
  host.data = { head: ["scheme", options.labelX, options.labelY || "value"], rows: lines.flatMap((l) => l.points.map((p) => [l.run.scheme, ...p])) };
  const f = frame(host, options.height || 320, partOf(axis(options.x, xs), part[0], options.x), partOf(axis(options.y, ys, true), part[1], options.y), options.formatX, options.formatY, options.labelX);
  const name = `part${clips++}`, isPart = part.flat().some((share, i) => share !== i % 2), inside = svg("g", isPart ? { "clip-path": `url(#${name})` } : {});
  if (isPart) f.g.append(svg("clipPath", { id: name }, svg("rect", { x: f.left, y: f.top, width: Math.max(0, f.right - f.left), height: f.base - f.top })));
  f.g.append(inside);
  for (const l of lines) {
    let d = "";
    l.points.forEach((p, i) => {
      const px = f.sx(p[0]).toFixed(1), py = f.sy(Math.min(p[1], cap)).toFixed(1);
      d += i === 0 ? `M${px} ${py}` : options.step ? `H${px}V${py}` : `L${px} ${py}`;
    });
    inside.append(svg("path", { class: "line", d, stroke: colour(l.run), "stroke-dasharray": dash(l.run), "data-scheme": l.run.scheme }));
  }
  const cut = lines.map((l) => [l.run.scheme, l.points.reduce((m, p) => Math.max(m, p[1]), 0)]).filter(([, max]) => max > cap);
  if (cut.length) f.g.append(svg("text", { x: f.right, y: f.top + 12, "text-anchor": "end" }, `▲ cut off: ${cut.map(([name, max]) => `${name} up to ${trim(options.formatY(max))}`).join(", ")}`));
  if (options.after) options.after(f, inside);
  const dot = svg("circle", { r: 4, fill: "none", visibility: "hidden" });
  const near = (event) => {
    const box = f.g.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null;
    for (const l of lines) {
      for (const p of l.points) {
        const x = f.sx(p[0]), y = f.sy(Math.min(p[1], cap)), d = Math.hypot((x - px) * 1.5, y - py);
        const isIn = !isPart || (x >= f.left && x <= f.right && y >= f.top && y <= f.base);
        if (isIn && (!best || d < best.d)) best = { d, l, p };
      }
    }
    if (!best) return leave();
    highlight(best.l.run.scheme);
    make(dot, { cx: f.sx(best.p[0]), cy: f.sy(Math.min(best.p[1], cap)), fill: colour(best.l.run), visibility: "visible" }, []);
    showTip(event, `${best.l.run.scheme}\n${options.tell(best.p, best.l.run)}`);
  };
  const leave = () => { hideTip(); highlight(null); dot.setAttribute("visibility", "hidden"); };
  const over = svg("rect", { class: "over", x: f.left, y: f.top, width: Math.max(0, f.right - f.left), height: f.base - f.top, fill: "transparent", onmousemove: near, onmouseleave: leave });
  f.g.append(dot, over);
  zoomable(f, over, (x, y) => { leave(); drawLines(host, lines, options, x && [inPart(part[0], x), inPart(part[1], y)]); });
}

/** Horizontal bars, one a run or (`label`) one of something else of a run, each of parts [{name, value, colour}]. */
function drawBars(host, rows, format) {
  if (!rows.length) return host.replaceChildren(el("p", { class: "sub" }, "Nothing to show."));
  const name = (row) => row.label || row.run.scheme;
  const w = host.clientWidth || 600, rowHeight = 25, left = Math.min(150, 24 + 7.2 * Math.max(...rows.map((r) => name(r).length))), right = w - 92;
  host.data = { head: ["", ...rows[0].parts.map((p) => p.name)], rows: rows.map((r) => [name(r), ...r.parts.map((p) => p.value)]) };
  const height = rows.length * rowHeight + 8;
  const max = Math.max(...rows.map((r) => sum(r.parts.map((p) => p.value))), 1e-12);
  const g = svg("svg", { viewBox: `0 0 ${w} ${height}`, height, role: "img" });
  rows.forEach((row, i) => {
    const y = i * rowHeight + 4, total = sum(row.parts.map((p) => p.value));
    let at = left;
    const group = svg("g", { "data-scheme": row.run.scheme }, svg("text", { class: "name", x: left - 10, y: y + 14, "text-anchor": "end" }, name(row)));
    for (const part of row.parts.filter((p) => p.value > 0)) {
      const width = (part.value / max) * (right - left);
      const text = `${name(row)}\n${part.name}: ${format(part.value)}` + (row.parts.length > 1 ? `\n${digits((part.value / total) * 100)} % of ${format(total)}` : "");
      group.append(svg("rect", { x: at, y, width: Math.max(width, 0.8), height: rowHeight - 7, rx: Math.min(2, width / 2), fill: part.colour,
        onmousemove: (e) => { showTip(e, text); highlight(row.run.scheme); }, onmouseleave: () => { hideTip(); highlight(null); } }));
      at += width;
    }
    if (row.note) group.append(svg("title", {}, row.note));
    group.append(svg("text", { class: "value", x: at + 7, y: y + 14 }, format(total)));
    g.append(group);
  });
  host.replaceChildren(g);
}

/** A map of cells, stronger where there is more. `rows`: numbers; `tell`: the text of a cell. */
function drawHeat(host, rows, tell, head) {
  const w = host.clientWidth || 600, left = 62, columns = Math.max(...rows.map((r) => r.length), 1);
  const size = Math.max(4, Math.min(18, 300 / rows.length)), width = (w - left - 12) / columns, height = rows.length * size + 26;
  const max = rows.flat().reduce((a, b) => Math.max(a, b), 1);
  const g = svg("svg", { viewBox: `0 0 ${w} ${height}`, height, role: "img" });
  host.data = { head, rows: rows.flatMap((row, y) => row.map((v, x) => [y, x, v])) };
  rows.forEach((row, y) => {
    if (y % Math.ceil(14 / size) === 0) g.append(svg("text", { x: left - 8, y: y * size + Math.min(size, 12), "text-anchor": "end" }, y));
    row.forEach((v, x) => g.append(svg("rect", { class: "cell", x: left + x * width, y: y * size, width: Math.max(width - (width > 4 ? 1 : 0), 0.5), height: size - (size > 5 ? 1 : 0), "fill-opacity": (0.06 + (0.94 * v) / max).toFixed(3),
      onmousemove: (e) => showTip(e, tell(y, x, v)), onmouseleave: hideTip })));
  });
  g.append(svg("text", { x: left, y: height - 6 }, head[1]), svg("text", { x: w - 12, y: height - 6, "text-anchor": "end" }, `faintest: 0, strongest: ${count(max)} ${head[2]}`));
  host.replaceChildren(g);
}
