"use strict";

// The table of means, recomputed from the cells embedded in the page whenever a filter changes.
// The lists of data.cells have one entry per cell, values one list per metric; data.instances[s][i] is the position of
// instance i's value among the values of setting s.

const data = JSON.parse(document.getElementById("cells").textContent);
const form = document.getElementById("filters");
const order = { column: null, ascending: true };

// For every setting, which of its values are selected.
function selectedLevels() {
  return data.settings.map((setting, s) => {
    const controls = [...form.querySelectorAll(`[data-setting="${s}"]`)];
    if (setting.control === "boxes") {
      const selected = setting.levels.map(() => false);
      for (const box of controls) selected[Number(box.dataset.level)] = box.checked;
      return selected;
    }
    if (setting.control === "range") {
      const [from, to] = controls.map((control) => Number(control.value));
      const last = controls[0].options.length - 1;
      // an instance without this setting passes only while the range is complete
      return setting.levels.map((_, level) => (level > last ? from === 0 && to === last : from <= level && level <= to));
    }
    const value = controls[0].value;
    return setting.levels.map((_, level) => value === "" || level === Number(value));
  });
}

// For every instance, whether it passes all filters.
function passingInstances() {
  const selected = selectedLevels();
  // cells are ordered by instance
  const count = data.cells.instance[data.cells.instance.length - 1] + 1;
  return Array.from({ length: count }, (_, i) => selected.every((levels, s) => levels[data.instances[s][i]]));
}

// The position of the metric that is shown.
function shownMetric() {
  const select = document.getElementById("metric");
  return select === null ? 0 : Number(select.value);
}

// Keep only the instances that have every method that occurs.
function keepCommon(passes, value) {
  const { instance, method } = data.cells;
  const methods = new Set();
  const found = passes.map(() => new Set());
  instance.forEach((i, c) => {
    if (!passes[i] || value[c] === null) return;
    methods.add(method[c]);
    found[i].add(method[c]);
  });
  return passes.map((pass, i) => pass && found[i].size === methods.size);
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function standardError(values) {
  if (values.length < 2) return null;
  const centre = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0);
  return Math.sqrt((squares / (values.length - 1)) * (1 / values.length + data.overlap));
}

function summarise(passes, reference, value) {
  const { instance, method, seconds } = data.cells;
  const lists = data.methods.map(() => ({ values: [], seconds: [], differences: [] }));
  const base = new Map();
  instance.forEach((i, c) => {
    if (passes[i] && method[c] === reference && value[c] !== null) base.set(i, value[c]);
  });
  instance.forEach((i, c) => {
    if (!passes[i] || value[c] === null) return;
    const list = lists[method[c]];
    list.values.push(value[c]);
    if (seconds[c] !== null) list.seconds.push(seconds[c]);
    if (base.has(i)) list.differences.push(value[c] - base.get(i));
  });
  return lists
    .map((list, m) => ({
      method: data.methods[m],
      cells: list.values.length,
      mean: mean(list.values),
      error: standardError(list.values),
      difference: mean(list.differences),
      difference_error: standardError(list.differences),
      better: mean(list.differences.map((difference) => (difference > 0 ? 1 : difference === 0 ? 0.5 : 0))),
      seconds: mean(list.seconds),
    }))
    .filter((line) => line.cells > 0);
}

function fixed(number, digits = 3) {
  if (number === null) return "-";
  const shown = number.toFixed(digits);
  const [whole, part] = (Number(shown) === 0 ? shown.replace("-", "") : shown).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return part === undefined ? grouped : `${grouped}.${part}`;
}

function signed(number, digits) {
  const shown = fixed(number, digits);
  return number !== null && number > 0 && Number(shown) !== 0 ? `+${shown}` : shown;
}

function sorted(lines) {
  if (order.column === null) return lines;
  const direction = order.ascending ? 1 : -1;
  return [...lines].sort((a, b) => {
    const [x, y] = [a[order.column], b[order.column]];
    // missing numbers come last in both directions
    if (x === null || y === null) return (x === null) - (y === null);
    return direction * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
}

function show() {
  let passes = passingInstances();
  const value = data.cells.values[shownMetric()];
  if (document.getElementById("common").checked) passes = keepCommon(passes, value);
  const lines = summarise(passes, Number(document.getElementById("reference").value), value);
  const body = document.querySelector("#summary tbody");
  body.replaceChildren(...sorted(lines).map((line) => row(line, data.metrics[shownMetric()].decimals)));
  const cells = lines.reduce((sum, line) => sum + line.cells, 0);
  const instances = passes.filter(Boolean).length;
  document.getElementById("counted").textContent = cells
    ? `${cells.toLocaleString("en-US")} cells of ${instances.toLocaleString("en-US")} instances count.`
    : "No cell passes the filters: choose at least one value of each setting.";
}

// A row; its cells hold the exact number in an attribute.
function row(line, digits) {
  const element = document.createElement("tr");
  element.dataset.method = line.method;
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = line.method;
  element.append(head);
  const texts = {
    cells: line.cells.toLocaleString("en-US"),
    mean: fixed(line.mean, digits),
    error: fixed(line.error, digits),
    difference: signed(line.difference, digits),
    difference_error: fixed(line.difference_error, digits),
    better: line.better === null ? "-" : `${fixed(100 * line.better, 1)} %`,
    seconds: fixed(line.seconds),
  };
  for (const [name, shown] of Object.entries(texts)) {
    const cell = document.createElement("td");
    cell.textContent = shown;
    cell.dataset.column = name;
    cell.dataset.value = line[name] ?? "";
    element.append(cell);
  }
  return element;
}

function sortBy(header) {
  const column = header.dataset.column;
  // numbers start with the largest, names with the first
  order.ascending = order.column === column ? !order.ascending : column === "method";
  order.column = column;
  for (const other of document.querySelectorAll("#summary thead th")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order.ascending ? "ascending" : "descending");
  show();
}

// What is folded on a screen and belongs to the text is printed.
function unfold(open) {
  for (const folded of document.querySelectorAll("details.print")) folded.open = open;
}
addEventListener("beforeprint", () => unfold(true));
addEventListener("afterprint", () => unfold(false));

if (data !== null) {
  form.addEventListener("change", show);
  // the values are reset only after the event
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const header of document.querySelectorAll("#summary thead th")) {
    header.querySelector("button").addEventListener("click", () => sortBy(header));
  }
  show();
}
