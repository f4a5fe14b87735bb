// Charts over time, by die and block, and of single requests.
const delta = (xs) => xs.map((x, i) => x - (i ? xs[i - 1] : 0));
/** What came a second: the growth of a total, by the time between two samples. */
const rate = (totals, s) => { const t = delta(s.time_s); return delta(totals).map((n, i) => (t[i] > 0 ? n / t[i] : null)); };
const perSecond = (x) => `${digits(x)} /s`;
const percent = (x) => (x == null ? "–" : `${digits(x * 100)} %`);
const bytesRate = (x) => `${digits(x)} MB/s`;

/** A card of lines over the time of the trace; `metrics`: key to [name, format, scale, value of a series]. */
function timeCard(title, sub, metrics, wide) {
  card(title, sub, (host, state) => {
    const [name, format, scale, value] = metrics[state.metric || Object.keys(metrics)[0]];
    drawLines(host, shown().map((run) => ({ run, points: value(run.series, run).map((v, i) => [run.series.time_s[i], scale === "log" && !(v > 0) ? null : v]) })),
      { x: "linear", y: scale, height: wide ? 360 : 300, formatX: (v) => `${digits(v)} s`, formatY: format, labelX: "time of the trace", labelY: name, tell: (p) => `${name}: ${format(p[1])}\nat ${digits(p[0])} s` });
  }, { wide, choices: Object.keys(metrics).length > 1 ? { metric: Object.entries(metrics).map(([k, [name]]) => [k, name]) } : {} });
}

/** Pages programmed for a page of the host, in a window of a few samples, so that one merge is not a spike to the sky. */
function amplification(s) {
  const host = delta(s.host_programs), all = delta(s.programs), w = Math.max(1, Math.round(host.length / 64));
  return host.map((_, i) => {
    const from = Math.max(0, i - w + 1), written = sum(host.slice(from, i + 1));
    return written > 0 ? sum(all.slice(from, i + 1)) / written : null;
  });
}

function overTime() {
  timeCard("Response times over time", "Of the reads and writes completed since the sample before; percentiles of every eight samples; flushes apart. All samples are drawn, and a sample keeps its longest response.", {
    p99: ["p99", micros, "log", (s) => s.response_p99_us], p999: ["p99.9", micros, "log", (s) => s.response_p99_9_us],
    longest: ["longest", micros, "log", (s) => s.response_max_us], mean: ["mean", micros, "log", (s) => s.response_mean_us], flush: ["flushes, longest", micros, "log", (s) => s.flush_max_us],
  }, true);
  timeCard("Backlog", "Requests that had arrived and were not complete: the most since the sample before. Where it grows, the device does not keep up.", { backlog: ["requests", count, "log", (s) => s.backlog_max] });
  timeCard("Throughput", "Completed: what left the device between two samples; arrived: what the trace asked of it.", {
    completed: ["completed", perSecond, "linear", (s) => rate(s.requests.map((n, i) => n - s.backlog[i]), s)], arrived: ["arrived", perSecond, "linear", (s) => rate(s.requests, s)],
    asked: ["MB/s asked", bytesRate, "linear", (s) => rate(s.read_bytes.map((n, i) => (n + s.write_bytes[i]) / 1e6), s)],
  });
  timeCard("Utilisation", "Share of the time in which dies, or the buses of channels, were busy.", {
    dies: ["dies, mean", percent, "linear", (s) => s.die_utilisation], die: ["busiest die", percent, "linear", (s) => s.die_utilisation_max],
    channels: ["channels, mean", percent, "linear", (s) => s.channel_utilisation], channel: ["busiest channel", percent, "linear", (s) => s.channel_utilisation_max],
  });
  const own = {};
  for (const r of runs) for (const key of Object.keys(r.series)) if (!KNOWN.has(key)) own[key] ??= [`${key.replaceAll("_", " ")} (scheme's own)`, digits, "linear", (s) => s[key] || []];
  timeCard("Work over time", "Write amplification of a few samples together; erases so far; values of the schemes' own.", {
    amplification: ["write amplification", digits, "linear", amplification], erases: ["erases so far", count, "linear", (s) => s.erases], ...own,
  });
  mergesOverTime();
}
const KNOWN = new Set(["requests", "time_s", "response_mean_us", "response_p99_us", "response_p99_9_us", "response_max_us", "backlog", "backlog_max", "flushes", "flush_max_us", "read_bytes", "write_bytes",
  "die_utilisation", "die_utilisation_max", "channel_utilisation", "channel_utilisation_max", "host_programs", "programs", "erases", "merges_switch", "merges_partial", "merges_full", "merges_dead", "merges_other"]);

/** The choice of one scheme, the first with the most of something before the others. */
const oneOf = (some) => ({ scheme: some.map((r) => [r.scheme, r.scheme]) });
const chosen = (state) => runs.find((r) => r.scheme === state.scheme) || runs[0];

/** Columns of merges by kind, stacked, at most one a few pixels. */
function mergesOverTime() {
  const KINDS = [["switch", "merges_switch", "var(--k0)"], ["partial", "merges_partial", "var(--k1)"], ["full", "merges_full", "var(--k2)"], ["dead", "merges_dead", "var(--k3)"], ["other", "merges_other", "var(--k5)"]];
  const all = (r) => sum(KINDS.map(([, key]) => r.series[key].at(-1) || 0));
  const merging = runs.filter((r) => all(r) > 0);
  if (!merging.length) return;
  card("Merges over time", "Merges of one scheme by kind, in equal stretches of the trace.", (host, state) => {
    const run = runs.find((r) => r.scheme === state.scheme) || merging[0], s = run.series, from = s.time_s[0], span = s.time_s.at(-1) - from || 1;
    const bins = Math.max(8, Math.min(120, Math.floor((host.clientWidth || 600) / 6)));
    const stacks = Array.from({ length: bins }, () => KINDS.map(() => 0));
    KINDS.forEach(([, key], k) => delta(s[key]).forEach((n, i) => (stacks[Math.min(bins - 1, Math.floor(((s.time_s[i] - from) / span) * bins))][k] += n)));
    const max = stacks.reduce((m, b) => Math.max(m, sum(b)), 1);
    const f = frame(host, 300, (a, b) => linear(from, from + span, a, b), (a, b) => linear(0, max, a, b), (v) => `${digits(v)} s`, count, "time of the trace");
    host.data = { head: ["time, s", ...KINDS.map(([name]) => name)], rows: stacks.map((b, i) => [from + (i / bins) * span, ...b]) };
    const width = (f.right - f.left) / bins;
    stacks.forEach((stack, i) => {
      let below = 0;
      stack.forEach((n, k) => {
        if (n > 0) f.g.append(svg("rect", { x: f.left + i * width, y: f.sy(below + n), width: Math.max(1, width - 1), height: f.sy(below) - f.sy(below + n), fill: KINDS[k][2],
          onmousemove: (e) => showTip(e, `${run.scheme}, from ${digits(from + (i / bins) * span)} s\n${KINDS.map(([name], j) => `${name}: ${count(stack[j])}`).join("\n")}`), onmouseleave: hideTip }));
        below += n;
      });
    });
  }, { keys: KINDS.map(([name, , c]) => [name, c]), choices: oneOf(merging) });
}

function wearMap() {
  card("Wear by die and block", "Erases of one scheme: a row a die, a cell a block. Of many blocks neighbours share a cell, and the most erased one counts.", (host, state) => {
    const run = chosen(state), map = run.wear.map, per = map.dies_per_row, cell = map.blocks_per_cell;
    const place = (what, at, each) => (each > 1 ? `${what}s ${at * each} to ${at * each + each - 1}` : `${what} ${at}`);
    drawHeat(host, map.rows, (y, x, v) => `${run.scheme}\n${place("die", y, per)}, ${place("block", x, cell)}: ${count(v)} erases`, [per > 1 ? `${per} dies` : "die", cell > 1 ? `${cell} blocks a cell` : "blocks", "erases"]);
  }, { choices: oneOf(runs) });
}

/** What single requests tell: only there if they were recorded. */
function whereTimeWent() {
  const told = runs.filter((r) => r.explained);
  if (!told.length) {
    document.getElementById("charts").append(el("section", {}, el("h2", {}, "Where the time went"),
      el("p", { class: "sub" }, "Parts of the response by percentile, and responses by size of the request, are shown of runs that record their requests: add ", el("code", {}, "--requests-out rows"), " to the command.")));
    return;
  }
  const one = (state) => told.find((r) => r.scheme === state.scheme) || told[0];
  const PARTS = [["queueing", "var(--k3)"], ["translation", "var(--k5)"], ["own pages", "var(--k4)"], ["merges and collections", "var(--k2)"]];
  card("Where the time went", "Mean of the requests around each percentile of one scheme: the wait before the first start, then the rest, divided as the work of its kinds.", (host, state) => {
    const run = one(state);
    drawBars(host, run.explained.percentiles.map((at) => {
      const work = [at.translation_us, at.flash_us, at.gc_us], total = sum(work) || 1, service = Math.max(0, at.response_us - at.queueing_us);
      const parts = [at.queueing_us, ...work.map((us) => (us / total) * service)];
      return { run, label: at.percentile === 100 ? "max" : `p${at.percentile}`, note: `${count(at.requests)} requests`, parts: PARTS.map(([name, c], i) => ({ name, colour: c, value: parts[i] })) };
    }), micros);
  }, { keys: PARTS, choices: oneOf(told) });
  card("Response times by size", "Reads and writes of one scheme by pages of the request.", (host, state) => {
    const run = one(state), key = { p99: "p99_us", mean: "mean_us", max: "max_us" }[state.figure];
    drawBars(host, run.explained.sizes.map((size) => ({ run, note: `${count(size.count)} requests`,
      label: `${size.op === "W" ? "write" : "read"} ${size.pages_from === size.pages_to ? size.pages_to : `${size.pages_from}–${size.pages_to}`}`,
      parts: [{ name: state.figure, colour: size.op === "W" ? "var(--k1)" : "var(--k4)", value: size[key] }] })), micros);
  }, { keys: [["reads", "var(--k4)"], ["writes", "var(--k1)"]], choices: { figure: [["p99", "p99"], ["mean", "mean"], ["max", "max"]], ...oneOf(told) } });
}
