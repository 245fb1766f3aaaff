"use strict";

// The table of means, computed from the cells embedded in the page whenever a filter changes. The lists of data have one
// entry per cell; a metric with sign -1 is better if it is smaller.

const data = JSON.parse(document.getElementById("cells").textContent);
const form = document.getElementById("filters");
const order = { column: "mean", ascending: null };

// The cells that pass all filters and have a value.
function passingCells(value) {
  const selected = data.settings.map(() => []);
  for (const box of form.querySelectorAll("[data-level]")) selected[box.dataset.setting][box.dataset.level] = box.checked;
  const cells = [...value.keys()].filter((c) => value[c] !== null && selected.every((levels, s) => levels[data.settings[s][c]]));
  if (!document.getElementById("common").checked) return cells;
  // only the instances that have every method that occurs
  const methods = new Set(cells.map((c) => data.method[c]));
  const found = new Map();
  for (const c of cells) found.set(data.instance[c], (found.get(data.instance[c]) ?? new Set()).add(data.method[c]));
  return cells.filter((c) => found.get(data.instance[c]).size === methods.size);
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

function summarise(cells, reference, value, sign) {
  const lists = data.methods.map(() => ({ values: [], seconds: [], differences: [] }));
  const base = new Map(cells.filter((c) => data.method[c] === reference).map((c) => [data.instance[c], value[c]]));
  for (const c of cells) {
    const list = lists[data.method[c]];
    list.values.push(value[c]);
    if (data.seconds[c] !== null) list.seconds.push(data.seconds[c]);
    if (base.has(data.instance[c])) list.differences.push(value[c] - base.get(data.instance[c]));
  }
  return lists
    .map((list, m) => ({
      method: data.methods[m],
      cells: list.values.length,
      mean: mean(list.values),
      error: standardError(list.values),
      difference: mean(list.differences),
      difference_error: standardError(list.differences),
      better: mean(list.differences.map((difference) => 0.5 + 0.5 * Math.sign(sign * difference))),
      seconds: mean(list.seconds),
    }))
    .filter((line) => line.cells > 0);
}

function fixed(number, digits = 3, plus = "") {
  if (number === null) return "-";
  const shown = Math.abs(number).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const isZero = !/[1-9]/.test(shown);
  return (isZero ? "" : number < 0 ? "-" : plus) + shown;
}

function sorted(lines, sign) {
  // the best mean first until a header is clicked
  const direction = (order.ascending ?? sign < 0) ? 1 : -1;
  return [...lines].sort((a, b) => {
    const [x, y] = [a[order.column], b[order.column]];
    // missing numbers come last in both directions
    if (x === null || y === null) return (x === null) - (y === null);
    return direction * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
}

function show() {
  const metric = Number(document.getElementById("metric")?.value ?? 0);
  const { sign, decimals } = data.metrics[metric];
  const cells = passingCells(data.values[metric]);
  const lines = summarise(cells, Number(document.getElementById("reference").value), data.values[metric], sign);
  document.querySelector("#summary tbody").replaceChildren(...sorted(lines, sign).map((line) => row(line, decimals)));
  const instances = new Set(cells.map((c) => data.instance[c])).size;
  document.getElementById("counted").textContent = cells.length
    ? `${fixed(cells.length, 0)} cells: ${lines.length} methods on ${fixed(instances, 0)} instances.`
    : "No cell passes the filters: choose at least one value of each setting.";
}

function row(line, digits) {
  const element = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = line.method;
  element.append(head);
  const texts = {
    cells: fixed(line.cells, 0),
    mean: fixed(line.mean, digits),
    error: fixed(line.error, digits),
    difference: fixed(line.difference, digits, "+"),
    difference_error: fixed(line.difference_error, digits),
    better: line.better === null ? "-" : `${fixed(100 * line.better, 1)}%`,
    seconds: fixed(line.seconds),
  };
  for (const [name, shown] of Object.entries(texts)) {
    const cell = document.createElement("td");
    cell.textContent = shown;
    if (line[name] !== null) cell.title = line[name];
    element.append(cell);
  }
  return element;
}

function sortBy(header) {
  const column = header.dataset.column;
  // numbers start with the largest, names with the first
  order.ascending = header.hasAttribute("aria-sort") ? !order.ascending : column === "method";
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
  for (const button of form.querySelectorAll("[data-all]")) {
    button.addEventListener("click", () => {
      const boxes = [...form.querySelectorAll(`[data-level][data-setting="${button.dataset.all}"]`)];
      const checked = !boxes.every((box) => box.checked);
      for (const box of boxes) box.checked = checked;
      show();
    });
  }
  for (const header of document.querySelectorAll("#summary thead th")) {
    header.querySelector("button").addEventListener("click", () => sortBy(header));
  }
  show();
}
