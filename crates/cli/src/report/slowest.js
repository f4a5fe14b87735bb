// What the dies did while the slowest request of a run was in work.
const CAUSES = [["host", "var(--k4)", "host: pages of requests"], ["gc", "var(--k1)", "gc: merges and collections"], ["map", "var(--k5)", "map"]];
const since = (ns) => `${ns < 0 ? "-" : ""}${micros(Math.abs(ns) / 1000)}`;
const exactly = (ns) => (ns / 1000).toLocaleString("en", { maximumFractionDigits: 3 });

function slowestRequest() {
  const slowest = doc.slowest;
  if (!slowest) return;
  const drawn = slowest.bars.length;
  const cut = slowest.left_out > 0 ? ` Only the last ${count(drawn)} of ${count(drawn + slowest.left_out)} operations are drawn.` : "";
  // Of many operations the last are there: the axis begins with the first of them.
  const begin = slowest.left_out > 0 ? slowest.bars.reduce((first, bar) => Math.min(first, bar.to_ns), slowest.end_ns) : 0;
  // They can be milliseconds at the end of minutes, which only times counted back from there tell apart.
  const zero = slowest.left_out > 0 ? slowest.end_ns : 0, label = zero > 0 ? "time from its completion" : "time since its arrival";
  const late = slowest.issue_ns > begin ? " The dashed line is when the device got it." : "";
  card("The slowest request", `${slowest.why} Below: what was going on from its arrival to its completion.${late}${cut}`, (host) => {
    const lanes = slowest.lanes.length, row = Math.max(7, Math.min(26, 440 / lanes)), height = lanes * row + 48;
    const every = Math.ceil(14 / row), ticks = [...Array(lanes).keys()].filter((i) => i % every === 0);
    const f = frame(host, height, (a, b) => linear(begin - zero, slowest.end_ns - zero, a, b), (base, top) => Object.assign((i) => top + (i + 0.5) * row, { ticks }), since, (i) => slowest.lanes[i], label), at = (ns) => f.sx(Math.max(begin, Math.min(ns, slowest.end_ns)) - zero);
    // Its own operations come last, so that their outlines lie above the others.
    const own = (bar) => bar.request === slowest.request;
    for (const bar of [...slowest.bars].sort((a, b) => own(a) - own(b))) {
      const x = at(bar.from_ns), width = Math.max(at(bar.to_ns) - x, 0.8);
      const [cause, fill] = CAUSES.find(([name]) => name === bar.cause);
      const whose = own(bar) ? "for this request" : bar.request == null ? "in idle time or by a timer" : `for request ${count(bar.request)}`;
      const text = `${slowest.lanes[bar.lane]}: ${bar.does}${bar.pages ? ` of ${count(bar.pages)} pages` : ""}\ncause: ${cause}, ${whose}\n${exactly(bar.from_ns)} to ${exactly(bar.to_ns)} µs since its arrival`;
      // What stands out behind a bar is its outline; one too narrow for four sides has two.
      const y = f.sy(bar.lane) - row * 0.4, out = Math.min(2, row * 0.12), side = own(bar) && width > 6 ? 1.6 : 0;
      if (own(bar)) f.g.append(svg("rect", { x, y: y - out, width, height: row * 0.8 + 2 * out, fill: "var(--ink)" }));
      f.g.append(svg("rect", { x: x + side, y, width: width - 2 * side, height: row * 0.8, fill, stroke: "var(--card)", "stroke-width": width > 4 && !side ? 0.8 : 0,
        onmousemove: (e) => showTip(e, text), onmouseleave: hideTip }));
    }
    if (slowest.issue_ns > begin) f.g.append(svg("line", { class: "reference", x1: at(slowest.issue_ns), x2: at(slowest.issue_ns), y1: f.top, y2: f.base, "stroke-dasharray": "4 3" }));
    host.data = { head: ["place", "operation", "pages", "cause", "request", "from, ns since arrival", "to, ns since arrival"],
      rows: slowest.bars.map((bar) => [slowest.lanes[bar.lane], bar.does, bar.pages, bar.cause, bar.request, bar.from_ns, bar.to_ns]) };
  }, { wide: true, keys: [...CAUSES.map(([, c, name]) => [name, c]), ["outlined: of this request", "none;box-shadow:inset 0 0 0 2px var(--ink)"]] });
}
