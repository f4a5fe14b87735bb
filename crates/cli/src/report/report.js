// The page of a run or a comparison.
const MERGES = [["switch", "var(--k0)", "Switch merges: a log block became the data block, nothing copied"], ["partial", "var(--k1)", "Partial merges: a log block became the data block after copying the rest"],
  ["full", "var(--k2)", "Full merges: logical blocks rebuilt in fresh blocks"], ["dead", "var(--k3)", "Dead log blocks: no valid page was left, only the erase"]];
const otherMerges = (r) => Object.entries(r.counters.merges).filter(([k]) => k !== "full_merge_associated" && !MERGES.some(([m]) => m === k));
const placed = (r, places) => sum(r.tables.tables.filter((t) => places.includes(t.memory)).map((t) => t.bytes));
const ownMerges = runs.map((r) => [r.scheme, otherMerges(r).map(([k, n]) => `${k} ${count(n)}`).join(", ")]).filter(([, kinds]) => kinds);
const OTHER = "Merges of kinds of the scheme's own" + (ownMerges.length ? ` (${ownMerges.map(([scheme, kinds]) => `${scheme}: ${kinds}`).join("; ")})` : "");
// Name, value, format, whether less is better, explanation.
const HELD_UP = { pcm: "PCM", map: "map steps", merges: "merge steps" };
const COLUMNS = [
  ...(runs.some((r) => get(r, "time/alone/mean_us")) ? [["alone", (r) => get(r, "time/alone/mean_us"), micros, 1, "Mean response of the same requests one at a time: what the scheme takes without a queue"]] : []),
  ["mean", (r) => get(r, "time/response/all/mean_us"), micros, 1, "Mean response time of reads and writes"], ["p99", (r) => get(r, "time/response/all/p99_us"), micros, 1, "Response time that 99 % of reads and writes keep"],
  ["p99.9", (r) => get(r, "time/response/all/p99_9_us"), micros, 1, "Response time that 99.9 % of reads and writes keep"], ["max", (r) => get(r, "time/response/all/max_us"), micros, 1, "Longest response of a read or write"],
  ["read mean", (r) => get(r, "time/response/read/mean_us"), micros, 1, "Mean response time of reads"], ["read p99", (r) => get(r, "time/response/read/p99_us"), micros, 1, "Response time that 99 % of reads keep"],
  ["write mean", (r) => get(r, "time/response/write/mean_us"), micros, 1, "Mean response time of writes"], ["write p99", (r) => get(r, "time/response/write/p99_us"), micros, 1, "Response time that 99 % of writes keep"],
  ["flush mean", (r) => get(r, "time/response/flush/mean_us"), micros, 1, "Mean response time of flushes: a flush waits for all writes before it"],
  ["behind", (r) => get(r, "time/behind_s"), (s) => (s == null ? "" : micros(s * 1e6)), 0, "How late the device was: it did not keep up, and the row measures its queue"],
  ["held up by", (r) => get(r, "held_up/by"), (by) => (by ? HELD_UP[by] || by.replace("_", " ") : "-"), 0, "What requests waited for when most of them waited: something that is busy, or steps that wait for each other while dies have time"],
  ["WA", (r) => get(r, "derived/write_amplification"), digits, 1, "Write amplification: pages programmed for a page that the host writes"], ["erases", (r) => get(r, "derived/erases"), count, 1, "Blocks erased"],
  ...MERGES.map(([k, , why]) => [k, (r) => r.counters.merges[k], count, 0, why]), ["other", (r) => sum(otherMerges(r).map((m) => m[1])), count, 0, OTHER],
  ["map memory", (r) => placed(r, ["sram", "dram"]), bytes, 1, "Mapping tables in the controller's memory and its DRAM"], ["energy", (r) => get(r, "energy/total_uj"), joules, 1, "Energy of flash, DRAM and phase-change memory"],
  ["wear max / mean", (r) => (r.wear.mean ? r.wear.max / r.wear.mean : null), digits, 0, "Erases of the most erased block, by the mean"],
];
const sort = { column: null, up: true };
function comparison() {
  const rows = [...runs];
  if (sort.column != null) {
    const value = (r) => COLUMNS[sort.column][1](r) ?? Infinity;
    rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (sort.up ? 1 : -1));
  }
  const best = COLUMNS.map(([, f, , matters]) => (matters && runs.length > 1 ? Math.min(...runs.map((r) => f(r) ?? Infinity)) : NaN));
  const pick = (i) => { sort.up = sort.column === i ? !sort.up : true; sort.column = i; comparison(); };
  const head = COLUMNS.map(([name, , , , why], i) => el("th", { tabindex: 0, title: why, onclick: () => pick(i), onkeydown: (e) => e.key === "Enter" && pick(i) }, name + (sort.column === i ? (sort.up ? " ↑" : " ↓") : "")));
  const body = rows.map((r) => el("tr", { onmouseenter: () => highlight(r.scheme), onmouseleave: () => highlight(null) },
    el("td", { title: r.title }, swatch(r), r.scheme), COLUMNS.map(([, f, format], i) => el("td", { class: f(r) === best[i] ? "best" : "" }, format(f(r))))));
  const failed = doc.results.filter((r) => !r.counters).map((r) => el("tr", {}, el("td", {}, r.scheme),
    el("td", { class: "text", colspan: COLUMNS.length }, r.refused ? `refused: ${r.refused}` : r.failed || r.bug)));
  document.getElementById("comparison").replaceChildren(el("thead", {}, el("tr", {}, el("th", { onclick: () => { sort.column = null; comparison(); } }, "scheme"), head)), el("tbody", {}, body, failed));
}

/** What each of several flows at once got of the device. */
function flowTable() {
  const run = runs.find((r) => r.flows);
  if (!run) return;
  const FIGURES = [["requests", (flow) => flow.response.all.count, count], ["commands", (flow) => flow.commands, count], ["MB/s", (flow) => flow.throughput_mb_s, digits], ["share, %", (flow) => flow.share_percent, digits],
    ["mean", (flow) => flow.response.all.mean_us, micros], ["p99", (flow) => flow.response.all.p99_us, micros], ["p99.9", (flow) => flow.response.all.p99_9_us, micros], ["max", (flow) => flow.response.all.max_us, micros],
    ["alone: mean", (flow) => flow.alone?.mean_us, micros], ["alone: p99", (flow) => flow.alone?.p99_us, micros], ["slowdown", (flow) => flow.slowdown, digits]];
  const { each: flows, fairness, jain } = run.flows;
  const known = FIGURES.filter(([, value]) => flows.some((flow) => value(flow) != null));
  const how = fairness == null ? "" : ` Fairness ${digits(fairness)}: the least slowdown divided by the largest; Jain's index ${digits(jain)}.`;
  card("Flows", `What each flow got; shares are those of the time in which all were at work.${how}`, (host) => {
    host.data = { head: ["flow", ...known.map(([name]) => name)], rows: flows.map((flow) => [flow.config.name, ...known.map(([, value]) => value(flow))]) };
    host.replaceChildren(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, host.data.head.map((name) => el("th", {}, name)))),
      el("tbody", {}, flows.map((flow) => el("tr", {}, el("td", {}, flow.config.name), known.map(([, value, format]) => el("td", {}, value(flow) == null ? "–" : format(value(flow))))))))));
  }, { wide: true, table: true });
}

function charts() {
  flowTable();
  card("Response times", "Share of requests that took at most this long; \"tail\" stretches the slowest ones.", (host, state) => {
    const tail = state.scale === "tail", top = 1 - 1e-5;
    const y = tail ? (v) => -Math.log10(1 - Math.min(v, top)) : (v) => v;
    const ticks = tail ? [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999] : [0, 0.25, 0.5, 0.75, 1];
    const axis = (a, b) => Object.assign((v) => a + (v / (tail ? 5 : 1)) * (b - a), { ticks: ticks.map(y) });
    const back = (v) => (tail ? 1 - 10 ** -v : v);
    const label = (v) => { const p = back(v) * 100; return `${tail && p > 99 ? trim(p.toFixed(3)) : digits(p)} %`; };
    drawLines(host, shown().map((run) => ({ run, points: (run.distribution[state.kind] || []).map(([ns, share]) => [ns / 1000, y(share)]) })),
      { x: "log", y: axis, step: true, height: 360, formatX: micros, formatY: label, labelX: "response time", labelY: "share", tell: (p) => `${label(p[1])} of ${state.kind}s within ${micros(p[0])}` });
  }, { wide: true, choices: { kind: [["write", "writes"], ["read", "reads"]], scale: [["share", "share"], ["tail", "tail"]] } });

  whereTimeWent();
  slowestRequest();
  overTime();

  const merges = runs.some((r) => otherMerges(r).some((m) => m[1] > 0)) ? [...MERGES, ["other", "var(--k5)"]] : MERGES;
  card("Merges by kind", `How log blocks were reclaimed; page-mapping schemes collect garbage without merges.${ownMerges.length ? ` ${OTHER}; \`floatgate schemes ${ownMerges[0][0]}\` tells what they are.` : ""}`, (host) => drawBars(host, runs.map((run) => ({
    run, parts: merges.map(([name, c]) => ({ name, colour: c, value: name === "other" ? sum(otherMerges(run).map((m) => m[1])) : run.counters.merges[name] })) })), count), { keys: merges });

  card("Write amplification", "Pages programmed for one page that the host writes, by cause.", (host) => drawBars(host, runs.map((run) => {
    const p = run.counters.flash.programs, n = run.counters.host.page_writes || 1;
    return { run, parts: [["host data", p.host, "var(--k4)"], ["moves", p.gc, "var(--k1)"], ["map", p.map, "var(--k5)"]].map(([name, v, c]) => ({ name, value: v / n, colour: c })) };
  }), digits), { keys: [["host data", "var(--k4)"], ["moves", "var(--k1)"], ["map", "var(--k5)"]] });

  card("Erases", "Blocks erased, by what they held.", (host) => drawBars(host, runs.map((run) => ({
    run, parts: [["user data", run.counters.flash.erases.gc, "var(--k2)"], ["map", run.counters.flash.erases.map, "var(--k5)"]].map(([name, value, c]) => ({ name, value, colour: c })) })), count),
    { keys: [["user data", "var(--k2)"], ["map", "var(--k5)"]] });

  const ENERGY = ["flash_read", "flash_program", "flash_erase", "pcm_read", "pcm_write", "dram_access", "dram_refresh"].filter((e) => runs.some((r) => r.energy[`${e}_uj`] > 0));
  const shade = (i) => `var(--k${[6, 4, 2, 0, 5, 1, 3][i % 7]})`;
  card("Energy", "By component.", (host) => drawBars(host, runs.map((run) => ({
    run, parts: ENERGY.map((e, i) => ({ name: e.replace("_", " "), value: run.energy[`${e}_uj`], colour: shade(i) })) })), joules), { keys: ENERGY.map((e, i) => [e.replace("_", " "), shade(i)]) });

  const PLACES = ["sram", "dram", "pcm", "flash"].filter((m) => runs.some((r) => placed(r, [m]) > 0));
  card("Memory", "Mapping tables as the papers count them, by where they lie.", (host) => drawBars(host, runs.map((run) => ({
    run, parts: PLACES.map((m, i) => ({ name: m.toUpperCase(), value: placed(run, [m]), colour: shade([1, 0, 4, 6][i]) })) })), bytes), { keys: PLACES.map((m, i) => [m.toUpperCase(), shade([1, 0, 4, 6][i])]) });

  card("Wear", "Blocks by how often they were erased.", (host, state) => drawLines(host, shown().map((run) => {
    const h = run.wear.histogram, total = sum(h.map((c) => c[1])), width = h.length > 1 ? h[1][0] - h[0][0] : 1;
    let below = 0;
    const points = h.map(([e, n]) => [e, state.form === "cumulative" ? ((below += n) / total) * 100 : (n / total) * 100]);
    return { run, points: [...points, [h[h.length - 1][0] + width, state.form === "cumulative" ? 100 : 0]] };
  }), { x: "linear", y: "linear", step: true, height: 330, formatX: count, formatY: (v) => `${digits(v)} %`, labelX: "erases of a block", labelY: "blocks, %", tell: (p) => `${digits(p[1])} % of the blocks, ${state.form === "cumulative" ? "at most " : ""}${count(p[0])} erases` }),
    { choices: { form: [["cumulative", "cumulative"], ["share", "share"]] } });

  wearMap();
}

if (runs.length === 1) document.getElementById("heading").textContent = "Result";
comparison();
preselect();
charts();
page(runs.length === 1 ? runs[0].title : `${doc.results.length} schemes on one trace`,
  `${doc.trace.name}: ${[["accepted", "request"], ["skipped", "record"], ["clamped", "time"]].map(([k, what]) => `${count(doc.trace.counts[k])} ${what}${doc.trace.counts[k] === 1 ? "" : "s"} ${k}`).join(", ")}`);
