// Cards around the charts, the legend, the configuration, and the page itself.
function card(title, sub, draw, options = {}) {
  const bar = el("div", { class: "bar" }), host = el("div"), keys = el("div", { class: "keys" });
  const words = [el("h2", {}, title), el("p", { class: "sub" }, noteText(sub))];
  // Selectors are too wide to stand beside the words.
  const below = options.selects && Object.values(options.choices).some((choices) => choices.length > 1);
  if (below) bar.classList.add("below");
  const section = el("section", { class: options.wide ? "wide" : "" }, below ? [...words, bar] : [bar, ...words], keys, host);
  document.getElementById("charts").append(section);
  const state = {};
  const redraw = () => { host.data = null; draw(host, state); svgLabel(host, title); };
  for (const [name, choices] of Object.entries(options.choices || {})) {
    state[name] = choices[0][0];
    if (choices.length < 2) continue;
    if (choices.length > 4 || options.selects) {
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
  const save = el("span", { class: "save" }, el("button", { type: "button", title: "Download the numbers of this chart", onclick: () => host.data && download(`${fileName(title)}.csv`, "text/csv", csv(host.data)) }, "CSV"),
    options.table ? "" : el("button", { type: "button", title: "Download this chart as a picture", onclick: () => host.querySelector("svg") && download(`${fileName(title)}.svg`, "image/svg+xml", picture(host.querySelector("svg"))) }, "SVG"));
  bar.append(save);
  for (const [text, c] of options.keys || []) keys.append(el("span", {}, el("i", { style: `background:${c}` }), text));
  redraws.push(redraw);
}
const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
const csv = (data) => [data.head, ...data.rows].map((row) => row.map((v) => (/[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v ?? "")).join(",")).join("\n") + "\n";
/** A chart that stands alone: what the page's style gives it is written into it. */
function picture(graphic) {
  const copy = graphic.cloneNode(true), of = graphic.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(of[i]);
    for (const key of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"]) node.setAttribute(key, style.getPropertyValue(key));
  });
  copy.setAttribute("xmlns", NS);
  copy.setAttribute("width", graphic.clientWidth);
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.documentElement).getPropertyValue("--card") }));
  return new XMLSerializer().serializeToString(copy);
}
function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
function svgLabel(host, title) {
  const graphic = host.querySelector("svg");
  if (graphic) graphic.setAttribute("aria-label", title);
}
const redrawAll = () => redraws.forEach((r) => r());

// ---- around the charts ----
const swatch = (r) => el("span", { class: "swatch" + (dash(r) === "none" ? "" : " dash"), style: `border-color:${colour(r)}` });
function legend() {
  const nav = document.getElementById("legend");
  if (runs.length < 2) return nav.remove();
  const buttons = runs.map((r) => el("button", { type: "button", class: hidden.has(r.scheme) ? "off" : "", "aria-pressed": String(!hidden.has(r.scheme)), title: r.title, onmouseenter: () => highlight(r.scheme), onmouseleave: () => highlight(null), onclick: (e) => {
    hidden.has(r.scheme) ? hidden.delete(r.scheme) : hidden.add(r.scheme);
    e.currentTarget.classList.toggle("off", hidden.has(r.scheme));
    e.currentTarget.setAttribute("aria-pressed", String(!hidden.has(r.scheme)));
    redrawAll();
  } }, swatch(r), r.scheme));
  const all = el("button", { type: "button", onclick: () => {
    const hide = hidden.size === 0;
    runs.forEach((r) => (hide ? hidden.add(r.scheme) : hidden.delete(r.scheme)));
    buttons.forEach((b) => { b.classList.toggle("off", hide); b.setAttribute("aria-pressed", String(!hide)); });
    redrawAll();
  } }, "all / none");
  nav.append(...buttons, all);
  if (hidden.size) nav.append(el("p", { class: "sub" }, `Lines show ${FEW} schemes at first: those with the shortest and the longest mean response and, in even steps of rank, some between; schemes above ${SANE} times the shortest are left out. Click a scheme to show or hide its line.`));
}

// A long name may break after an underscore, never inside a word.
const breakable = (name) => name.split(/(?<=[_.])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
const UNITS = [[/_us$/, micros], [/_ns$/, (v) => micros(v / 1000)], [/_ps$/, (v) => `${count(v)} ps a byte`], [/_bytes$/, bytes], [/_percent$/, (v) => `${v} %`]];
const WORDS = { queue_depth: { 0: "no limit" }, speed: { 1: "as in the trace" } };
/** A setting in words and units. */
function setting(key, value) {
  if (value == null || value === "-") return "not set";
  if (WORDS[key] && WORDS[key][value] !== undefined) return WORDS[key][value];
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "boolean" || value === "true" || value === "false") return String(value) === "true" ? "yes" : "no";
  if (value === "" || value === "none") return "none";
  const number = typeof value === "number" ? value : /^\d+(\.\d+)?$/.test(value) ? Number(value) : null;
  if (number == null) return String(value);
  const unit = UNITS.find(([ending]) => ending.test(key));
  return unit ? trim(unit[1](number)) : Number.isInteger(number) ? count(number) : String(number);
}

function configuration() {
  const host = document.getElementById("configuration");
  const rows = (o) => Object.entries(o).filter(([, v]) => v !== undefined).map(([k, v]) => el("tr", {}, el("td", {}, breakable(k)), el("td", {}, setting(k, v))));
  const block = (title, o) => host.append(el("div", {}, el("h3", {}, title), el("table", {}, el("tbody", {}, rows(o)))));
  Object.entries(doc.configuration).forEach(([name, o]) => block(`[${name}]`, o));
  block("trace", { name: doc.trace.name, format: doc.trace.format, ...doc.trace.counts });
  runs.filter((r) => r.options && Object.keys(r.options).length).forEach((r) => block(`[schemes.${r.scheme}]`, r.options));
}

// Options of the command and names of settings in a note stay on one line; the full stop after them is not theirs.
const noteText = (n) => n.split(/(`[^`]+`|--set [^\s)]*[^\s).,;:]|--scheme [^\s]+|--[a-z]+(?:-[a-z]+)*)/).map((part, i) => (i % 2 ? el("code", {}, part.replaceAll("`", "")) : part));

/** Everything but table and charts, and then the first drawing. `title` and `trace` stand at the top. */
function page(title, trace) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.classList.toggle("dark", dark.matches);
  document.getElementById("theme").onclick = () => document.documentElement.classList.toggle("dark");
  document.getElementById("title").textContent = title;
  document.getElementById("trace").textContent = trace;
  document.getElementById("device").textContent = doc.device;
  document.getElementById("notes").append(...doc.notes.map((n) => el("p", {}, noteText(n))));
  document.querySelector("main").after(el("footer", {}, `${doc.program}. Draw a box over lines to enlarge that part; a double click shows the whole.`));
  legend();
  configuration();
  redrawAll();
  let pending;
  addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(redrawAll, 120); });
}
