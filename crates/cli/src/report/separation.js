// Of a sweep that varies the separation: write amplification by separation, between what knows the future and a formula.
const ORACLE = "fk";
/** Shapes that differ without their colours, around a point. */
const SHAPES_OF_MARKS = [
  (x, y) => `M${x - 5} ${y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z`, (x, y) => `M${x - 5} ${y - 5}h10v10h-10Z`, (x, y) => `M${x} ${y - 6}l6 11h-12Z`,
  (x, y) => `M${x} ${y - 7}l6 7l-6 7l-6 -7Z`, (x, y) => `M${x - 2} ${y - 6}h4v4h4v4h-4v4h-4v-4h-4v-4h4Z`, (x, y) => `M${x} ${y + 6}l6 -11h-12Z`, (x, y) => `M${x - 6} ${y - 2}h12v4h-12Z`,
];
/** The next as many have the same shapes, empty. */
function mark(k, x, y) {
  const c = `var(--c${k % 7})`, filled = Math.floor(k / 7) % 2 === 0;
  return svg("path", { d: SHAPES_OF_MARKS[k % 7](x, y), fill: filled ? c : "var(--card)", stroke: c, "stroke-width": 1.6 });
}

function separationCard() {
  const along = axes.findIndex((axis) => /(^|\.)separation$/.test(axis.key));
  const closed = (cell) => (cell.device ? cell.device.uniform_write_amplification : null);
  const schemes = runs.filter((r) => doc.cells.some((cell) => cell.scheme === r.scheme && closed(cell) != null));
  if (along < 0 || inStep || !schemes.length) return;
  const others = axes.map((_, i) => i).filter((i) => i !== along);
  // Marks tell victim rules apart if those are varied, else the values of another key.
  others.sort((a, b) => /policy$/.test(axes[b].key) - /policy$/.test(axes[a].key));
  const choices = { scheme: schemes.map((r) => [r.scheme, r.scheme]) };
  if (others.length) choices.marks = others.map((i) => [String(i), `marks: ${axes[i].key}`]);
  if (others.length > 1) for (const i of others) choices[axes[i].key] = fixed[axes[i].key];
  card("Write amplification by separation", "Each mark is a run. The dashed line is the best run that knows the future; the dotted one is a formula, for uniform writes and greedy victims on the same device.",
    (host, state) => bySeparation(host, state, axes[along], state.marks == null ? -1 : Number(state.marks), closed), { wide: true, selects: true, choices });
}

function bySeparation(host, state, axis, marks, closed) {
  const along = axes.indexOf(axis), rules = marks < 0 ? [null] : axes[marks].values;
  const cells = axis.values.flatMap((_, i) => rules.map((_, k) => byAddress.get(address(state.scheme, fixedAt(state).map((v, a) => (a === along ? i : a === marks ? k : v))))));
  const points = cells.map((cell, n) => ({ cell, i: Math.floor(n / rules.length), k: n % rules.length, y: value(cell, "write_amplification") })).filter((p) => p.y != null);
  if (!points.length) return host.replaceChildren(el("p", { class: "sub" }, "Nothing to show."));
  const rule = (k) => (rules[k] == null ? "" : String(rules[k])), best = points.filter((p) => axis.values[p.i] === ORACLE).sort((a, b) => a.y - b.y)[0];
  const formula = cells.filter(Boolean).map(closed).find((y) => y != null), lines = [];
  if (best) lines.push([best.y, "7 4", `best ${ORACLE}${rule(best.k) && ` (${rule(best.k)})`}: ${digits(best.y)}`]);
  if (formula != null) lines.push([formula, "2 4", `closed form, uniform writes: ${digits(formula)}`]);
  const ys = [...points.map((p) => p.y), ...lines.map(([y]) => y)], height = 400;
  // Right of all marks there is room for the names of the lines.
  const rest = besides(state, drawn(along, marks)), room = 6.6 * Math.max(0, ...lines.map(([, , text]) => text.length));
  const f = frame(host, height, (a, b) => Object.assign(linear(-0.5, axis.values.length - 0.5, a, b - Math.min(room, (b - a) * 0.4)), { ticks: axis.values.map((_, i) => i) }),
    (a, b) => linear(Math.min(1, ...ys), Math.max(...ys) * 1.05, a, b), (t) => String(axis.values[t]), digits, `${axis.key}${rest ? `   with ${rest}` : ""}`);
  lines.sort((a, b) => b[0] - a[0]).forEach(([y, dashes, text], n) => {
    // The lower of two lines that lie close has its name below it.
    const below = n > 0 && f.sy(y) - f.sy(lines[n - 1][0]) < 20;
    f.g.append(svg("line", { class: "reference", x1: f.left, x2: f.right, y1: f.sy(y), y2: f.sy(y), "stroke-dasharray": dashes }),
      svg("text", { class: "name", x: f.right, y: f.sy(y) + (below ? 14 : -5), "text-anchor": "end" }, text));
  });
  const apart = Math.min(18, (f.sx(1) - f.sx(0)) * 0.8 / rules.length);
  for (const p of points) {
    const x = f.sx(p.i) + (p.k - (rules.length - 1) / 2) * apart, y = f.sy(p.y);
    const tell = (event) => showTip(event, `${state.scheme}\nwrite amplification: ${digits(p.y)}\n${settings(p.cell)}`);
    f.g.append(svg("g", { onmousemove: tell, onmouseleave: hideTip }, svg("circle", { cx: x, cy: y, r: 9, fill: "transparent" }), mark(p.k, x, y)));
  }
  if (marks >= 0) marksBelow(f, height, rules);
  host.data = { head: [axis.key, marks < 0 ? "" : axes[marks].key, "write amplification"], rows: [...points.map((p) => [axis.values[p.i], rule(p.k), p.y]), ...lines.map(([y, , text]) => [text.split(":")[0], "", y])] };
}

/** What each mark stands for, in lines below the axis. */
function marksBelow(f, height, rules) {
  let x = f.left, y = height + 18;
  rules.forEach((name, k) => {
    const wide = 34 + 7 * String(name).length;
    if (x + wide > f.right && x > f.left) { x = f.left; y += 20; }
    f.g.append(mark(k, x + 6, y - 4), svg("text", { class: "name", x: x + 17, y }, String(name)));
    x += wide;
  });
  make(f.g, { viewBox: `0 0 ${f.right + 12} ${y + 8}`, height: y + 8 }, []);
}
