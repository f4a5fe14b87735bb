// The page of a fleet: distributions over volumes.
const SHARES = ["min", "p5", "p25", "median", "p75", "p95", "max", "mean", "mean_weighted_by_host_writes"];
const SPREADS = [["write_amplification", "write amplification", digits, ["linear", "log"]], ["response_p99_us", "p99 response time", micros, ["log", "linear"]]];

function spreads() {
  const head = ["over volumes", "scheme", "volumes", ...SHARES.slice(0, -1), "weighted"];
  const body = SPREADS.flatMap(([key, name, format]) => runs.map((r) => el("tr", { onmouseenter: () => highlight(r.scheme), onmouseleave: () => highlight(null) },
    el("td", {}, name), el("td", { title: r.title }, swatch(r), r.scheme), el("td", {}, count(r[key].volumes)), SHARES.map((s) => el("td", {}, format(r[key][s]))))));
  document.getElementById("comparison").replaceChildren(el("thead", {}, el("tr", {}, head.map((name) => el("th", {}, name)))), el("tbody", {}, body));
  document.getElementById("heading").textContent = "Volumes";
  document.querySelector(".hint").textContent = "Percentiles over the volumes that have the value (write amplification: those written to); weighted: mean by pages that the host wrote.";
}

// No volume has less than the least.
const fromNothing = (steps) => (steps.length ? [[steps[0][0], 0], ...steps] : steps);
for (const [key, name, format, scales] of SPREADS) {
  card(`${name[0].toUpperCase()}${name.slice(1)} of the volumes`, "Share of the volumes that have at most this value.", (host, state) =>
    drawLines(host, shown().map((run) => ({ run, points: fromNothing(run[key].cumulative) })),
      { x: state.scale, y: (a, b) => Object.assign((v) => a + v * (b - a), { ticks: [0, 0.25, 0.5, 0.75, 1] }), step: true, height: 360, formatX: format,
        formatY: (v) => `${digits(v * 100)} %`, labelX: name, tell: (p) => `${digits(p[1] * 100)} % of the volumes within ${format(p[0])}` }),
    { wide: true, choices: { scale: scales.map((s) => [s, s]) } });
}
spreads();
page(`${count(doc.volumes)} volumes`, `${doc.trace.name}: ${count(doc.trace.counts.accepted)} requests accepted, ${count(doc.trace.counts.skipped)} records skipped`);
