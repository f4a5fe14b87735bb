// The page of a sweep: a figure against a varied key, a map of two keys, and all cells.
const FIGURES = {
  response_mean_us: ["mean", "mean response time", micros], response_p50_us: ["p50", "median response time", micros],
  response_p99_us: ["p99", "99th percentile of the response time", micros], response_p99_9_us: ["p99.9", "99.9th percentile of the response time", micros],
  response_max_us: ["max", "longest response time", micros], read_mean_us: ["read mean", "mean response time of reads", micros],
  read_p99_us: ["read p99", "99th percentile of reads", micros], write_mean_us: ["write mean", "mean response time of writes", micros],
  write_p99_us: ["write p99", "99th percentile of writes", micros], write_amplification: ["WA", "write amplification", digits],
  copies: ["copies", "pages moved", count], erases: ["erases", "blocks erased", count], merges_switch: ["switch", "switch merges", count],
  merges_partial: ["partial", "partial merges", count], merges_full: ["full", "full merges", count], merges_dead: ["dead", "dead log blocks", count],
  merges_other: ["other", "merges of the scheme's own kinds", count], block_erases_max: ["wear max", "erases of the most erased block", count],
  map_memory_bytes: ["map memory", "mapping tables in memory", bytes], energy_uj: ["energy", "energy", joules],
  iops: ["IOPS", "reads and writes a second", digits], elapsed_s: ["elapsed", "time to the last completion", (s) => micros(s == null ? s : s * 1e6)],
  behind_s: ["behind", "how late the device was", (s) => micros(s == null ? s : s * 1e6)],
};
const SHAPES = { blocks_per_die: ["blocks a die", count], spare_percent: ["spare", (x) => `${digits(x)} %`], log_blocks: ["log blocks", count] };
const axes = doc.varied;
const size = axes.reduce((n, axis) => n * axis.values.length, 1);
const inStep = axes.length > 1 && doc.cells.length !== size * doc.results.length;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
for (const cell of doc.cells) cell.at = axes.map((axis) => axis.values.findIndex((v) => same(v, cell.varied[axis.key])));
const address = (scheme, at) => `${scheme} ${at.join(" ")}`;
const byAddress = new Map(doc.cells.map((cell) => [address(cell.scheme, cell.at), cell]));
const reason = (cell) => (cell.result.refused ? `refused: ${cell.result.refused}` : cell.result.failed || `BUG: ${cell.result.bug}`);
const value = (cell, figure) => (cell && cell.figures ? cell.figures[figure] : null);
const settings = (cell) => axes.map((axis) => `${axis.key} = ${cell.varied[axis.key]}`).join("\n");

// Numbers at equal steps stand where they are, all other values side by side.
const isLinear = (axis) => {
  const v = axis.values, step = v[1] - v[0];
  return v.every((x) => typeof x === "number") && v.every((x, i) => i === 0 || Math.abs(x - v[i - 1] - step) < 1e-9 * Math.abs(x || 1));
};
const isWords = (axis) => axis.values.some((v) => typeof v !== "number");
const position = (axis, i) => (isLinear(axis) ? axis.values[i] : i);
function scaleOf(axis) {
  const xs = axis.values.map((_, i) => position(axis, i)), min = Math.min(...xs), max = Math.max(...xs), margin = (max - min) * 0.03 || 0.5;
  return (a, b) => Object.assign(linear(min - margin, max + margin, a, b), { ticks: xs });
}

const figureChoices = Object.entries(FIGURES).filter(([name]) => doc.cells.some((cell) => value(cell, name) != null)).map(([name, [, text]]) => [name, text]);
const axisChoices = (verb) => axes.map((axis, i) => [String(i), `${verb} ${axis.key}`]);
// A selector for each key: which of its values counts where the key is not drawn itself.
const fixed = inStep ? {} : Object.fromEntries(axes.filter(() => axes.length > 1).map((axis) => [axis.key, axis.values.map((v, i) => [String(i), `${axis.key} = ${v}`])]));
const fixedAt = (state) => axes.map((axis) => Number(state[axis.key] || 0));
const drawn = (...shown) => axes.filter((_, i) => !shown.includes(i) && !inStep);
const besides = (state, others) => others.map((axis) => `${axis.key} = ${axis.values[Number(state[axis.key] || 0)]}`).join(", ");

/** The cells of a scheme along an axis, as lines that end where a cell gave no record. */
function segments(run, along, state) {
  const order = axes[along].values.map((_, i) => i).sort((a, b) => position(axes[along], a) - position(axes[along], b));
  const lines = [];
  let line = null;
  for (const i of order) {
    const at = inStep ? axes.map(() => i) : fixedAt(state).map((v, k) => (k === along ? i : v));
    const cell = byAddress.get(address(run.scheme, at)), y = value(cell, state.figure);
    if (y == null || (state.scale === "log" && !(y > 0))) { line = null; continue; }
    if (!line) lines.push((line = { run, points: [] }));
    line.points.push([position(axes[along], i), y, cell]);
    // Between two words there is nothing that a line could lead through.
    if (isWords(axes[along])) line = null;
  }
  return lines;
}

const dots = (f, inside, lines, r) => {
  for (const { run, points } of lines) for (const p of points) inside.append(svg("circle", { cx: f.sx(p[0]), cy: f.sy(p[1]), r, fill: colour(run), "data-scheme": run.scheme }));
};

function charts() {
  separationCard();
  mapCard();
  const x = axes.length > 1 ? { along: axisChoices("along") } : {};
  card("Figures", "A line ends where a cell gave no record. Of the keys that are not drawn the value chosen counts.", (host, state) => {
    const along = Number(state.along || 0), axis = axes[along], [, name, format] = FIGURES[state.figure];
    const lines = shown().flatMap((run) => segments(run, along, state));
    drawLines(host, lines, {
      x: scaleOf(axis), y: state.scale === "log" ? "log" : "linear", height: 400, after: (f, inside) => dots(f, inside, lines, isWords(axis) ? 5 : 3), formatX: (t) => String(axis.values[axis.values.findIndex((_, i) => position(axis, i) === t)]), formatY: format,
      labelX: [axis.key, besides(state, drawn(along))].filter(Boolean).join("   with "), tell: (p) => `${name}: ${format(p[1])}\n${settings(p[2])}`,
    });
  }, { wide: true, selects: axes.length > 1, choices: { figure: figureChoices, ...x, ...fixed, scale: [["linear", "linear"], ["log", "log"]] } });
  pairsCard();
  amplificationCard();
}

function mapCard() {
  if (axes.length < 2 || inStep) return;
  const down = [...axisChoices("down")];
  down.push(down.shift());
  const first = ([name]) => (name === "write_amplification" ? 0 : 1), figure = [...figureChoices].sort((a, b) => first(a) - first(b));
  card("Map of two keys", "Stronger is more; the least is framed. A cell without a record is empty; the table says why.", (host, state) => heatMap(host, state, Number(state.across), Number(state.down)),
    { wide: true, selects: true, choices: { figure, scheme: runs.map((r) => [r.scheme, r.scheme]), across: axisChoices("across"), down, ...(axes.length > 2 ? fixed : {}) } });
}

function heatMap(host, state, across, down) {
  if (across === down) return host.replaceChildren(el("p", { class: "sub" }, "Choose two different keys."));
  const [ax, ay] = [axes[across], axes[down]], [, name, format] = FIGURES[state.figure];
  const rows = ay.values.map((_, j) => ax.values.map((_, i) => byAddress.get(address(state.scheme, fixedAt(state).map((v, k) => (k === across ? i : k === down ? j : v))))));
  const all = rows.flat().map((cell) => value(cell, state.figure)).filter((v) => v != null), min = Math.min(...all), max = Math.max(...all);
  const share = (v) => (max > min ? (min > 0 && max / min > 20 ? Math.log(v / min) / Math.log(max / min) : (v - min) / (max - min)) : 0.5);
  const wordsWide = (axis) => 7 * Math.max(...axis.values.map((v) => String(v).length)) + 16;
  const w = host.clientWidth || 600, left = Math.min(wordsWide(ay), w / 3), top = 4, wide = Math.max(4, (w - left - 8) / ax.values.length), high = Math.max(18, Math.min(38, 420 / ay.values.length));
  const base = top + high * ay.values.length, height = base + 44;
  const g = svg("svg", { viewBox: `0 0 ${w} ${height}`, height, role: "img" });
  rows.forEach((row, j) => {
    g.append(svg("text", { class: "name", x: left - 8, y: top + (j + 0.5) * high + 4, "text-anchor": "end" }, String(ay.values[j])));
    row.forEach((cell, i) => {
      const v = value(cell, state.figure), x = left + i * wide, y = top + j * high, least = v != null && v === min && min < max;
      const tell = (event) => showTip(event, cell ? `${state.scheme}\n${v == null ? (cell.figures ? "no value" : reason(cell)) : `${name}: ${format(v)}`}\n${settings(cell)}` : "no cell");
      // Never so strong that the number on it could not be read, in light or dark.
      const fill = v == null ? "none" : `color-mix(in oklab, var(--c0) ${Math.round(4 + 58 * share(v))}%, var(--card))`, text = v == null ? (cell && !cell.figures ? "no record" : "–") : format(v);
      g.append(svg("rect", { x: x + 1, y: y + 1, width: wide - 3, height: high - 3, rx: 2, style: `fill:${fill};stroke:${least ? "var(--ink)" : "var(--line)"};stroke-width:${least ? 2 : 1}`, onmousemove: tell, onmouseleave: hideTip, "pointer-events": "all" }));
      if (wide > 7 * text.length + 4) g.append(svg("text", { class: "value", x: x + wide / 2, y: y + high / 2 + 4, "text-anchor": "middle", "pointer-events": "none", "font-weight": least ? 700 : 400 }, text));
    });
  });
  const every = Math.ceil(wordsWide(ax) / wide);
  ax.values.forEach((v, i) => { if (i % every === 0) g.append(svg("text", { class: "name", x: left + (i + 0.5) * wide, y: base + 16, "text-anchor": "middle" }, String(v))); });
  const others = besides(state, drawn(across, down));
  g.append(svg("text", { x: left + (w - left) / 2, y: height - 8, "text-anchor": "middle" }, `${name}: ${ax.key} across, ${ay.key} down${others ? `   with ${others}` : ""}`));
  host.replaceChildren(g);
  host.data = { head: [ax.key, ay.key, name], rows: rows.flatMap((row, j) => row.map((cell, i) => [ax.values[i], ay.values[j], value(cell, state.figure)])) };
}

const COLUMNS = [
  ...axes.map((axis) => [axis.key, (cell) => cell.varied[axis.key], String]), ["scheme", (cell) => cell.scheme, String],
  ...figureChoices.map(([name]) => [FIGURES[name][0], (cell) => value(cell, name), FIGURES[name][2]]),
  ...Object.entries(SHAPES).map(([name, [text, format]]) => [text, (cell) => (cell.device ? cell.device[name] : null), format]),
];
const sort = { column: null, up: true };
function cellTable() {
  const rows = doc.cells.filter((cell) => !hidden.has(cell.scheme));
  if (sort.column != null) {
    const of = COLUMNS[sort.column][1], order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    // Cells without a value stand last whichever way the others are sorted.
    rows.sort((a, b) => (of(a) == null) - (of(b) == null) || order(of(a), of(b)) * (sort.up ? 1 : -1));
  }
  const pick = (i) => { sort.up = sort.column === i ? !sort.up : true; sort.column = i; cellTable(); };
  const head = COLUMNS.map(([name], i) => el("th", { tabindex: 0, onclick: () => pick(i), onkeydown: (e) => e.key === "Enter" && pick(i) }, name + (sort.column === i ? (sort.up ? " ↑" : " ↓") : "")));
  const before = axes.length + 1;
  const line = (cell) => {
    const run = runs.find((r) => r.scheme === cell.scheme), first = COLUMNS.slice(0, before).map(([, of, format], i) => el("td", {}, i === axes.length && run ? swatch(run) : null, format(of(cell))));
    const rest = cell.figures ? COLUMNS.slice(before).map(([, of, format]) => el("td", {}, format(of(cell)))) : el("td", { class: "text", colspan: COLUMNS.length - before }, reason(cell));
    return el("tr", { onmouseenter: () => highlight(cell.scheme), onmouseleave: () => highlight(null) }, first, rest);
  };
  document.getElementById("comparison").replaceChildren(el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows.map(line)));
}

document.getElementById("heading").textContent = "Cells";
// Long: the drawings come first.
document.getElementById("charts").after(document.getElementById("comparison").closest("section"));
document.querySelector(".hint").textContent = "Click a column to sort. mean to max: response time of reads and writes; WA: write amplification; switch to other: merges by kind.";
doc.trace = doc.traces.length === 1 ? doc.traces[0] : { name: doc.traces.map((t) => t.name).join(", ") };
doc.configuration = { vary: Object.fromEntries(axes.map((axis) => [axis.key, axis.values])), ...doc.configuration };
charts();
redraws.push(cellTable);
page(`${count(doc.cells.length)} cells of a sweep`, doc.traces.map((t) => `${t.name}: ${count(t.counts.accepted)} requests`).join("; "));
