// The page of a run or a comparison.
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

if (runs.length === 1) document.getElementById("heading").textContent = "Result";
comparison();
charts();
page(runs.length === 1 ? runs[0].title : `${doc.results.length} schemes on one trace`,
  `${doc.trace.name}: ${[["accepted", "request"], ["skipped", "record"], ["clamped", "time"]].map(([k, what]) => `${count(doc.trace.counts[k])} ${what}${doc.trace.counts[k] === 1 ? "" : "s"} ${k}`).join(", ")}`);
