"use strict";
// One document of results in, one page out. No library: a few scales, axes and marks in SVG.
const doc = JSON.parse(document.getElementById("data").textContent);
const runs = doc.results.filter((r) => r.counters);
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
    if (choices.length > 4) {
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

// ---- the page ----
const MERGES = [["switch", "var(--k0)"], ["partial", "var(--k1)"], ["full", "var(--k2)"], ["dead", "var(--k3)"]];
const otherMerges = (r) => Object.entries(r.counters.merges).filter(([k]) => k !== "full_merge_associated" && !MERGES.some(([m]) => m === k));
const placed = (r, places) => sum(r.tables.tables.filter((t) => places.includes(t.memory)).map((t) => t.bytes));
const COLUMNS = [
  ["mean", (r) => get(r, "time/response/all/mean_us"), micros, 1], ["p99", (r) => get(r, "time/response/all/p99_us"), micros, 1],
  ["p99.9", (r) => get(r, "time/response/all/p99_9_us"), micros, 1], ["max", (r) => get(r, "time/response/all/max_us"), micros, 1],
  ["WA", (r) => get(r, "derived/write_amplification"), digits, 1], ["erases", (r) => get(r, "derived/erases"), count, 1],
  ...MERGES.map(([k]) => [k, (r) => r.counters.merges[k], count, 0]), ["other", (r) => sum(otherMerges(r).map((m) => m[1])), count, 0],
  ["map memory", (r) => placed(r, ["sram", "dram"]), bytes, 1], ["energy", (r) => get(r, "energy/total_uj"), joules, 1],
  ["wear max / mean", (r) => (r.wear.mean ? r.wear.max / r.wear.mean : null), digits, 0],
];
const sort = { column: null, up: true };
function comparison() {
  const rows = [...runs];
  if (sort.column != null) {
    const value = (r) => COLUMNS[sort.column][1](r) ?? Infinity;
    rows.sort((a, b) => (value(a) - value(b)) * (sort.up ? 1 : -1));
  }
  const best = COLUMNS.map(([, f, , matters]) => (matters && runs.length > 1 ? Math.min(...runs.map((r) => f(r) ?? Infinity)) : NaN));
  const pick = (i) => { sort.up = sort.column === i ? !sort.up : true; sort.column = i; comparison(); };
  const head = COLUMNS.map(([name], i) => el("th", { tabindex: 0, onclick: () => pick(i), onkeydown: (e) => e.key === "Enter" && pick(i) }, name + (sort.column === i ? (sort.up ? " ↑" : " ↓") : "")));
  const body = rows.map((r) => el("tr", { onmouseenter: () => highlight(r.scheme), onmouseleave: () => highlight(null) },
    el("td", { title: r.title }, swatch(r), r.scheme), COLUMNS.map(([, f, format], i) => el("td", { class: f(r) === best[i] ? "best" : "" }, format(f(r))))));
  const failed = doc.results.filter((r) => !r.counters).map((r) => el("tr", {}, el("td", {}, r.scheme),
    el("td", { class: "text", colspan: COLUMNS.length }, r.refused ? `refused: ${r.refused}` : r.failed || r.bug)));
  document.getElementById("comparison").replaceChildren(el("thead", {}, el("tr", {}, el("th", { onclick: () => { sort.column = null; comparison(); } }, "scheme"), head)), el("tbody", {}, body, failed));
}
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

function charts() {
  card("Response times", "Share of requests that took at most this long; \"tail\" stretches the slowest ones.", (host, state) => {
    const tail = state.scale === "tail", top = 1 - 1e-5;
    const y = tail ? (v) => -Math.log10(1 - Math.min(v, top)) : (v) => v;
    const ticks = tail ? [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999] : [0, 0.25, 0.5, 0.75, 1];
    const axis = (a, b) => Object.assign((v) => a + (v / (tail ? 5 : 1)) * (b - a), { ticks: ticks.map(y) });
    const back = (v) => (tail ? 1 - 10 ** -v : v);
    const label = (v) => { const p = back(v) * 100; return `${tail && p > 99 ? trim(p.toFixed(3)) : digits(p)} %`; };
    drawLines(host, shown().map((run) => ({ run, points: (run.distribution[state.kind] || []).map(([ns, share]) => [ns / 1000, y(share)]) })),
      { x: "log", y: axis, step: true, height: 360, formatX: micros, formatY: label, labelX: "response time", tell: (p) => `${label(p[1])} of ${state.kind}s within ${micros(p[0])}` });
  }, { wide: true, choices: { kind: [["write", "writes"], ["read", "reads"]], scale: [["share", "share"], ["tail", "tail"]] } });

  const merges = runs.some((r) => otherMerges(r).some((m) => m[1] > 0)) ? [...MERGES, ["other", "var(--k4)"]] : MERGES;
  card("Merges by kind", "How log blocks were reclaimed; page-mapping schemes collect garbage without merges.", (host) => drawBars(host, shown().map((run) => ({
    run, parts: merges.map(([name, c]) => ({ name, colour: c, value: name === "other" ? sum(otherMerges(run).map((m) => m[1])) : run.counters.merges[name] })) })), count), { keys: merges });

  card("Write amplification", "Pages programmed for one page that the host writes, by cause.", (host) => drawBars(host, shown().map((run) => {
    const p = run.counters.flash.programs, n = run.counters.host.page_writes || 1;
    return { run, parts: [["host data", p.host, "var(--k4)"], ["moves", p.gc, "var(--k1)"], ["map", p.map, "var(--k5)"]].map(([name, v, c]) => ({ name, value: v / n, colour: c })) };
  }), digits), { keys: [["host data", "var(--k4)"], ["moves", "var(--k1)"], ["map", "var(--k5)"]] });

  card("Erases", "Blocks erased, by what they held.", (host) => drawBars(host, shown().map((run) => ({
    run, parts: [["user data", run.counters.flash.erases.gc, "var(--k2)"], ["map", run.counters.flash.erases.map, "var(--k5)"]].map(([name, value, c]) => ({ name, value, colour: c })) })), count),
    { keys: [["user data", "var(--k2)"], ["map", "var(--k5)"]] });

  const ENERGY = ["flash_read", "flash_program", "flash_erase", "pcm_read", "pcm_write", "dram_access", "dram_refresh"].filter((e) => runs.some((r) => r.energy[`${e}_uj`] > 0));
  const shade = (i) => `var(--k${[6, 4, 2, 0, 5, 1, 3][i % 7]})`;
  card("Energy", "By component.", (host) => drawBars(host, shown().map((run) => ({
    run, parts: ENERGY.map((e, i) => ({ name: e.replace("_", " "), value: run.energy[`${e}_uj`], colour: shade(i) })) })), joules), { keys: ENERGY.map((e, i) => [e.replace("_", " "), shade(i)]) });

  const PLACES = ["sram", "dram", "pcm", "flash"].filter((m) => runs.some((r) => placed(r, [m]) > 0));
  card("Memory", "Mapping tables as the papers count them, by where they lie.", (host) => drawBars(host, shown().map((run) => ({
    run, parts: PLACES.map((m, i) => ({ name: m.toUpperCase(), value: placed(run, [m]), colour: shade([1, 0, 4, 6][i]) })) })), bytes), { keys: PLACES.map((m, i) => [m.toUpperCase(), shade([1, 0, 4, 6][i])]) });

  card("Wear", "Blocks by how often they were erased.", (host, state) => drawLines(host, shown().map((run) => {
    const h = run.wear.histogram, total = sum(h.map((c) => c[1])), width = h.length > 1 ? h[1][0] - h[0][0] : 1;
    let below = 0;
    const points = h.map(([e, n]) => [e, state.form === "cumulative" ? ((below += n) / total) * 100 : (n / total) * 100]);
    return { run, points: [...points, [h[h.length - 1][0] + width, state.form === "cumulative" ? 100 : 0]] };
  }), { x: "linear", y: "linear", step: true, height: 330, formatX: count, formatY: (v) => `${digits(v)} %`, labelX: "erases of a block", tell: (p) => `${digits(p[1])} % of the blocks, ${state.form === "cumulative" ? "at most " : ""}${count(p[0])} erases` }),
    { choices: { form: [["cumulative", "cumulative"], ["share", "share"]] } });

  timeSeries();
}

function timeSeries() {
  const delta = (xs) => xs.map((x, i) => x - (i ? xs[i - 1] : 0));
  const rate = (key) => (s) => delta(s[key]);
  const METRICS = {
    response_mean_us: ["response time, mean", micros, "log"], response_max_us: ["response time, longest", micros, "log"],
    amplification: ["write amplification", digits, "linear"], erases: ["erases so far", count, "linear"],
    merges_full: ["full merges so far", count, "linear"], merges_partial: ["partial merges so far", count, "linear"],
    merges_switch: ["switch merges so far", count, "linear"], merges_dead: ["dead log blocks so far", count, "linear"],
  };
  const known = new Set([...Object.keys(METRICS), "requests", "time_s", "host_programs", "programs"]);
  for (const r of runs) for (const key of Object.keys(r.series)) if (!known.has(key)) METRICS[key] ??= [`${key.replaceAll("_", " ")} (scheme's own)`, digits, "linear"];
  const values = (run, key) => {
    const s = run.series;
    if (key !== "amplification") return s[key] || [];
    const host = rate("host_programs")(s), all = rate("programs")(s), out = [];
    // A window of a few samples, so that one merge is not a spike to the sky.
    const w = Math.max(1, Math.round(host.length / 64));
    for (let i = 0; i < host.length; i++) {
      const from = Math.max(0, i - w + 1), h = sum(host.slice(from, i + 1));
      out.push(h > 0 ? sum(all.slice(from, i + 1)) / h : null);
    }
    return out;
  };
  const thin = (points) => {
    const k = Math.ceil(points.length / 120);
    return points.filter((p, i) => k < 2 || i % k === k - 1 || i === points.length - 1);
  };
  card("Over time", "Each point stands for the requests since the one before.", (host, state) => {
    const [name, format, scale] = METRICS[state.metric];
    drawLines(host, shown().map((run) => ({ run, points: thin(values(run, state.metric).map((v, i) => [run.series.time_s[i], scale === "log" && !(v > 0) ? null : v]).filter((p) => p[1] != null)) })),
      { x: "linear", y: scale, height: 360, formatX: (v) => `${digits(v)} s`, formatY: format, labelX: "time of the trace", tell: (p) => `${name}: ${format(p[1])}\nat ${digits(p[0])} s` });
  }, { wide: true, choices: { metric: Object.entries(METRICS).map(([k, [text]]) => [k, text]) } });
}

function configuration() {
  const host = document.getElementById("configuration");
  const rows = (o) => Object.entries(o).map(([k, v]) => el("tr", {}, el("td", {}, k), el("td", {}, Array.isArray(v) ? v.join(", ") || "none" : String(v))));
  const block = (title, o) => host.append(el("div", {}, el("h3", {}, title), el("table", {}, el("tbody", {}, rows(o)))));
  Object.entries(doc.configuration).forEach(([name, o]) => block(`[${name}]`, o));
  block("trace", { name: doc.trace.name, format: doc.trace.format, ...doc.trace.counts });
  runs.filter((r) => r.options && Object.keys(r.options).length).forEach((r) => block(`[schemes.${r.scheme}]`, r.options));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.classList.toggle("dark", dark.matches);
document.getElementById("theme").onclick = () => document.documentElement.classList.toggle("dark");
document.getElementById("title").textContent = runs.length === 1 ? runs[0].title : `${doc.results.length} schemes on one trace`;
document.getElementById("trace").textContent = `${doc.trace.name}: ${[["accepted", "request"], ["skipped", "record"], ["clamped", "time"]].map(([k, what]) => `${count(doc.trace.counts[k])} ${what}${doc.trace.counts[k] === 1 ? "" : "s"} ${k}`).join(", ")}`;
document.getElementById("device").textContent = doc.device;
// Options of the command in a note stay on one line.
const noteText = (n) => n.split(/(--set [^\s)]+)/).map((part, i) => (i % 2 ? el("code", {}, part) : part));
document.getElementById("notes").append(...doc.notes.map((n) => el("p", {}, noteText(n))));
document.querySelector("main").after(el("footer", {}, doc.program));
if (runs.length === 1) document.getElementById("heading").textContent = "Result";
comparison();
legend();
charts();
configuration();
redrawAll();
let pending;
addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(redrawAll, 120); });
