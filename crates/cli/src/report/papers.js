// The page of the papers: claims and items with their verdicts, then a chart for each plot with the paper's points as marks on our lines.
const VERDICTS = { reproduced: "reproduced", same_direction: "same direction", not_reproduced: "not reproduced", cannot_be: "cannot be", not_attempted: "not attempted" };
const KINDS = { own: "the paper's own", public: "public trace", recorded: "recorded", matched: "matched stand-in", unmatched: "unmatched" };
const PAPERS = { lastpp: "LAST++", last: "LAST", hat: "HAT", faster: "FASTer", blog: "BLogFTL" };
const paperName = (key) => PAPERS[key] || key;
const chip = (verdict) => el("span", { class: `chip ${verdict}` }, VERDICTS[verdict]);
const kindChips = (kinds) => kinds.map((kind) => el("span", { class: "chip kind" }, KINDS[kind]));
const withUnit = (n, x) => `${trim(digits(x))}${n.unit ? ` ${n.unit}` : ""}`;
const ours = (n) => (n.ours == null ? "–" : `${withUnit(n, n.ours)}${n.runs > 1 && n.least !== n.largest ? ` (${trim(digits(n.least))} to ${trim(digits(n.largest))})` : ""}${n.same_direction != null && n.same_direction < n.runs && n.runs > 1 ? `, ${n.same_direction} of ${n.runs} in the direction` : ""}`);
const SENSE = { about: "", at_least: "at least ", at_most: "at most " };
const theirs = (n) => SENSE[n.sense] + (n.paper[0] === n.paper[1] ? withUnit(n, n.paper[0]) : `${trim(digits(n.paper[0]))} to ${withUnit(n, n.paper[1])}`);
const whyText = (why) => (why ? (why.is_tested ? "" : "Guess: ") + why.text : "");
const anchor = (item) => `${item.paper}-${item.item}`;
const tally = (numbers) => Object.keys(VERDICTS).map((v) => [v, numbers.filter((n) => n.verdict === v).length]).filter(([, n]) => n);

// One colour a line name on the whole page.
for (const item of doc.items) for (const plot of item.plots) for (const line of plot.lines) if (!runs.some((r) => r.scheme === line.name)) runs.push({ scheme: line.name, title: line.name });
const runOf = (name) => runs.find((r) => r.scheme === name) || { scheme: name };

function table(head, rows, widths = {}) {
  return el("div", { class: "scroll" }, el("table", { class: "words" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", {}, h)))), el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((c, i) => el("td", { class: widths[i] || "" }, c)))))));
}

function claims() {
  const link = (row) => (row.item ? el("a", { href: `#${row.paper}-${row.item}` }, `${paperName(row.paper)}: ${row.claim}`) : `${paperName(row.paper)}: ${row.claim}`);
  return table(["", "claim", "paper", "verdict", "ours, with its spread", "measured on", "why", "command"],
    doc.claims.map((row) => [row.number, link(row), row.paper_says, chip(row.verdict), row.numbers.map((n) => el("div", {}, ours(n), row.numbers.length > 1 ? el("span", { class: "sub" }, `  ${n.text}`) : null)), kindChips(row.workloads), el("span", { class: "sub" }, whyText(row.why)), el("code", {}, row.command)]), { 2: "say", 4: "why", 6: "why" });
}

function counts() {
  const of = (list) => tally(list).map(([v, n]) => el("span", { class: `chip ${v}` }, `${n} ${VERDICTS[v]}`));
  const worst = Object.keys(KINDS).map((k) => [k, doc.items.filter((i) => i.workloads[i.workloads.length - 1] === k).length]).filter(([, n]) => n);
  const line = (text, chips) => el("p", {}, `${text} `, chips);
  return [doc.claims.length ? line(`${doc.claims.length} claims:`, of(doc.claims)) : null, line(`${doc.items.length} tables, figures and groups of numbers:`, of(doc.items)),
    line("by the least convincing workload of each:", worst.map(([k, n]) => el("span", { class: "chip kind" }, `${n} ${KINDS[k]}`)))];
}

function numbers(item) {
  if (!item.numbers.length) return null;
  return table(["number", "paper", "ours", "verdict", "measured on"], item.numbers.map((n) => [n.text, theirs(n), ours(n), chip(n.verdict), kindChips([n.workload])]));
}

/** Everything of an item but its plots. */
function details(item) {
  const list = (title, texts) => (texts.length ? [el("h3", {}, title), texts.map((t) => el("p", {}, el("code", {}, t)))] : []);
  return el("details", { id: anchor(item) },
    el("summary", {}, chip(item.verdict), ` ${paperName(item.paper)} ${item.place}: ${item.title} `, el("span", { class: "sub" }, tally(item.numbers).map(([v, n]) => `${n} ${VERDICTS[v]}`).join(", "))),
    item.setting ? el("p", {}, item.setting) : null, item.why ? el("p", {}, el("b", {}, "Why: "), whyText(item.why)) : null, numbers(item),
    ...list("Tests", item.tests), ...list("Did not run", item.failed), ...list("Commands", item.commands));
}

/** Lines over a setting; the spread of ours as bars, the paper's points as rings. */
function drawPlot(host, item, plot, state) {
  const values = [...new Set(plot.lines.flatMap((l) => l.points.map((p) => p.x)))];
  const number = (v) => Number(v), isNumeric = values.length && values.every((v) => v !== "" && isFinite(number(v)));
  const order = isNumeric ? [...values].sort((a, b) => a - b) : values;
  const isEven = isNumeric && number(order[order.length - 1]) <= 40 * Math.max(number(order[1] ?? order[0]) - number(order[0]), 1e-9);
  const at = (v) => (isEven ? number(v) : order.indexOf(String(v)));
  const xs = order.map(at), margin = (Math.max(...xs) - Math.min(...xs)) * 0.04 || 0.5;
  const studies = [...new Set(plot.lines.map((l) => l.study))];
  const lines = plot.lines.filter((l) => studies.length < 2 || l.study === state.study).map((l) => ({ run: runOf(l.name), line: l, points: l.points.map((p) => [at(p.x), p.mean, p]).sort((a, b) => a[0] - b[0]) }));
  const rings = Object.entries(plot.paper).flatMap(([name, points]) => points.filter(([x]) => order.includes(String(x))).map(([x, y]) => ({ name, x: at(x), y })));
  const all = [...lines.flatMap((l) => l.points.flatMap((p) => [p[2].least, p[2].largest])), ...rings.map((r) => r.y)], positive = all.filter((y) => y > 0);
  const isLog = state.scale === "log" && positive.length > 0;
  let sx, sy;
  drawLines(host, lines, {
    x: (a, b) => (sx = Object.assign(linear(Math.min(...xs) - margin, Math.max(...xs) + margin, a, b), { ticks: xs })),
    y: (a, b) => (sy = isLog ? logarithmic(Math.min(...positive), Math.max(...positive), a, b) : linear(Math.min(0, ...all), Math.max(...all), a, b)),
    height: 340, formatX: (t) => String(order[xs.indexOf(t)]), formatY: digits, labelX: plot.x, labelY: plot.y,
    tell: (p) => `${plot.x} = ${p[2].x}\n${plot.y}: ${digits(p[1])}${p[2].least !== p[2].largest ? ` (${digits(p[2].least)} to ${digits(p[2].largest)})` : ""}`,
  });
  const graphic = host.querySelector("svg");
  if (!sy) return;
  const before = graphic.lastChild, low = (y) => sy(isLog ? Math.max(y, Math.min(...positive)) : y);
  for (const { run, points } of lines) for (const [x, y, p] of points) {
    if (p.least !== p.largest) graphic.insertBefore(svg("line", { x1: sx(x), x2: sx(x), y1: low(p.least), y2: low(p.largest), stroke: colour(run), "stroke-width": 1.2, opacity: 0.6, "data-scheme": run.scheme }), before);
    graphic.insertBefore(svg("circle", { cx: sx(x), cy: low(y), r: 2.6, fill: colour(run), "data-scheme": run.scheme }), before);
  }
  for (const r of rings) graphic.append(svg("circle", { cx: sx(r.x), cy: low(r.y), r: 5.5, fill: "var(--card)", "fill-opacity": 0.4, stroke: colour(runOf(r.name)), "stroke-width": 2, "data-scheme": r.name,
    onmousemove: (e) => { showTip(e, `${r.name}, the paper's: ${digits(r.y)}`); highlight(r.name); }, onmouseleave: () => { hideTip(); highlight(null); } }));
  host.append(el("p", { class: "keys" }, [...new Set([...lines.map((l) => l.run.scheme), ...rings.map((r) => r.name)])].map((name) => el("span", {}, swatch(runOf(name)), name)), rings.length ? el("span", {}, "○ the paper's") : null));
}

doc.device = `${doc.is_full ? "The full form" : "The quick form: few seeds, points and workloads; --full takes all"}, ${doc.date}. ${doc.command}`;
doc.notes = [];
doc.configuration = {};
const main = document.querySelector("main"), section = document.getElementById("comparison").closest("section");
document.getElementById("heading").textContent = doc.claims.length ? "Claims of abstracts and conclusions" : "Tables and figures";
document.querySelector(".hint").replaceChildren("Reproduced: within a quarter of the paper's number and every run in its direction. Same direction: the direction only. One rule for all numbers, nothing tuned to meet one.");
document.getElementById("comparison").closest(".scroll").replaceWith(el("div", {}, counts(), doc.claims.length ? claims() : null));
const items = el("section", { class: "wide" }, el("h2", {}, "Tables, figures and groups of numbers"), doc.items.map(details));
document.getElementById("charts").before(items);
document.getElementById("configuration").closest("section").hidden = true;
for (const item of doc.items) for (const plot of item.plots.filter((p) => p.lines.length)) {
  const studies = [...new Set(plot.lines.map((l) => l.study))];
  card(`${paperName(item.paper)} ${item.place}: ${plot.title}`, `${plot.y[0].toUpperCase()}${plot.y.slice(1)}. ${whyText(item.why) || item.setting || ""}`, (host, state) => drawPlot(host, item, plot, state),
    { choices: { study: studies.map((s) => [s, s]), scale: plot.is_log ? [["log", "log"], ["linear", "linear"]] : [["linear", "linear"], ["log", "log"]] } });
}
const open = () => { const target = document.getElementById(location.hash.slice(1)); if (target && target.tagName === "DETAILS") target.open = true; };
addEventListener("hashchange", open);
doc.trace = { name: "", format: "", counts: {} };
page("the five papers", "");
document.getElementById("legend")?.remove();
open();
