// Of a sweep: two figures of all cells against each other, and write amplification against spare space.
/** The points that no other one beats in both numbers, in ascending order of the first. */
function unbeaten(points) {
  const best = [];
  for (const p of [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1])) if (!best.length || p[1] < best.at(-1)[1]) best.push(p);
  return best;
}
/** A grey line through points, in steps or straight. */
function reference(f, inside, points, steps, dashes) {
  const d = points.map(([x, y], i) => (i === 0 ? `M${f.sx(x)} ${f.sy(y)}` : steps ? `H${f.sx(x)}V${f.sy(y)}` : `L${f.sx(x)} ${f.sy(y)}`)).join("");
  inside.prepend(svg("path", { class: "line soft", d, "stroke-dasharray": dashes || "none" }));
}
/** The scale that suits the values of a figure; bytes have their ticks at round numbers of KiB, MiB and so on. */
function scaleFor(values, format) {
  const min = Math.min(...values), max = Math.max(...values);
  if (min > 0 && max > 20 * min) return "log";
  if (format !== bytes) return "linear";
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(max, 1)) / 10));
  return (a, b) => {
    const f = linear(min / unit, max / unit, a, b);
    return Object.assign((v) => f(v / unit), { ticks: f.ticks.map((t) => t * unit) });
  };
}

function pairsCard() {
  const order = (first) => [...figureChoices].sort((a, b) => (b[0] === first) - (a[0] === first));
  card("Two figures against each other", "A point is a cell. The grey line joins those that no other one of the schemes shown beats in both, less being better.", (host, state) => {
    const [, nameX, formatX] = FIGURES[state.across], [, nameY, formatY] = FIGURES[state.figure];
    const found = doc.cells.map((cell) => ({ cell, run: runs.find((r) => r.scheme === cell.scheme), x: value(cell, state.across), y: value(cell, state.figure) }));
    const lines = found.filter((p) => p.run && !hidden.has(p.run.scheme) && p.x != null && p.y != null).map((p) => ({ run: p.run, points: [[p.x, p.y, p.cell]] }));
    const points = lines.map((l) => l.points[0]);
    drawLines(host, lines, { x: scaleFor(points.map((p) => p[0]), formatX), y: scaleFor(points.map((p) => p[1]), formatY), height: 400, formatX, formatY, labelX: nameX, labelY: nameY,
      after: (f, inside) => { dots(f, inside, lines, 5); reference(f, inside, unbeaten(points), true); },
      tell: (p) => `${nameX}: ${formatX(p[0])}\n${nameY}: ${formatY(p[1])}\n${settings(p[2])}` });
  }, { wide: true, selects: true, choices: { figure: order("response_mean_us"), across: order("map_memory_bytes").map(([key, text]) => [key, `against ${text}`]) } });
}

function amplificationCard() {
  const cells = doc.cells.filter((cell) => cell.device && cell.device.spare_percent != null && value(cell, "write_amplification") != null);
  const spare = new Set(cells.map((cell) => cell.device.spare_percent));
  if (spare.size < 2) return;
  card("Write amplification by spare space", "A point is a cell. The dotted line is a formula: uniform writes of single pages, greedy victims, on the same devices.", (host) => {
    const ascending = (a, b) => a[0] - b[0];
    const lines = shown().map((run) => ({ run, points: cells.filter((cell) => cell.scheme === run.scheme).map((cell) => [cell.device.spare_percent, value(cell, "write_amplification"), cell]).sort(ascending) }));
    const closed = cells.filter((cell) => !hidden.has(cell.scheme) && cell.device.uniform_write_amplification != null).map((cell) => [cell.device.spare_percent, cell.device.uniform_write_amplification]).sort(ascending);
    drawLines(host, lines.filter((l) => l.points.length), { x: "linear", y: "linear", height: 400, formatX: (x) => `${digits(x)} %`, formatY: digits, labelX: "spare blocks, of the data blocks", labelY: "write amplification",
      after: (f, inside) => { dots(f, inside, lines, 4); if (closed.length > 1) reference(f, inside, closed, false, "2 4"); },
      tell: (p) => `write amplification: ${digits(p[1])}\nspare: ${digits(p[0])} %\n${settings(p[2])}` });
  }, { wide: true });
}
