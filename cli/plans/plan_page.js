// The content of the page except the graph, which plan_graph.js draws. Everything that comes from
// the model is inserted as text, never as markup.

// Characters that are invisible or change the text direction are written as \uNNNN.
const kUnseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const visible = text => text.replace(
  kUnseen, sign => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));
const told = document.getElementById("plan").textContent;
// Few models have such names, and checking every text of a large model is slow.
const isPlain = !/\\[bfnrt]|\\u00[01]/.test(told) && told.search(kUnseen) < 0;
const plan = JSON.parse(told, isPlain ? undefined
  : (key, value) => typeof value === "string" ? visible(value) : value);
const steps = plan.steps;
// With this many steps, full-size boxes would make the graph far too large.
const isCompact = steps.length > 150;
const kBackendColours = 7;
const kShownGroups = 40;
const kShownCandidates = 12;

const isConversion = step => step.kind === "conversion";
const backends = [...new Set(plan.totals.filter(total => total.kind === "kernel")
  .map(total => total.backend))];
const colourOf = one => one.kind === "conversion" ? "var(--conversion)"
  : one.kind === "copy" ? "var(--copy)"
  : `var(--b${Math.min(backends.indexOf(one.backend), kBackendColours - 1)})`;
const doerOf = step => step.backend || "Tessera itself";

function element(name, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "rect", "text", "title", "path", "line"].includes(name);
  const made = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                     : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const byId = id => document.getElementById(id);
const plain = us => us < 1000 ? us.toFixed(1) : us.toFixed(0);
// A non-breaking space keeps a number and its unit on one line.
const withUnit = (number, unit) => `${number}\u00a0${unit}`;
const timeText = us => us == null ? "not known"
  : us < 1000 ? withUnit(us.toFixed(1), "µs")
  : us < 1e6 ? withUnit((us / 1e3).toFixed(us < 1e4 ? 3 : 2), "ms")
  : withUnit((us / 1e6).toFixed(2), "s");
const percent = (part, digits = 1) => withUnit((100 * part).toFixed(digits), "%");
const bytesText = bytes => bytes < 1024 ? withUnit(bytes, "B")
  : bytes < 1024 ** 2 ? withUnit((bytes / 1024).toFixed(1), "KiB")
  : bytes < 1024 ** 3 ? withUnit((bytes / 1024 ** 2).toFixed(1), "MiB")
  : withUnit((bytes / 1024 ** 3).toFixed(2), "GiB");
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function layoutsOf(ports) {
  return [...new Set(ports.filter(port => !port.is_constant).map(port => port.layout))].join(",");
}

function layoutText(one) {
  const read = layoutsOf(one.inputs), made = layoutsOf(one.outputs);
  return read === made || read === "" ? made : `${read}→${made}`;
}

// ---- Candidates.

const byNode = new Map();
for (const candidate of plan.candidates) {
  for (const node of candidate.nodes) {
    if (!byNode.has(node)) byNode.set(node, []);
    byNode.get(node).push(candidate);
  }
}

const isOut = one => one.verdict === "refused" || one.verdict === "not_built";
const isMeasured = one => one.verdict === "fine";
const nameOf = one => one.backend + (one.algorithm ? ":" + one.algorithm : "");

function marginText(one) {
  if (one.margin === "only_choice") return "used: the only choice";
  if (one.is_chosen) return one.ahead_us ? `used, ${timeText(one.ahead_us)} ahead` : "used";
  if (one.verdict === "refused") return `refused: ${one.reason}`;
  if (one.verdict === "not_built") return `could not be built: ${one.reason}`;
  if (one.verdict === "not_measured") return "not measured";
  switch (one.margin) {
    case "impossible": return "no plan can use it";
    case "as_good": return "predicted as fast or faster";
    case "never": return "never chosen, even at 0 µs";
    case "behind": return `chosen if ${timeText(one.behind_us)} ` +
      `(${percent(one.behind_us / one.price_us, 0)}) faster`;
  }
  return "";
}

// Within a group: the candidate in use first, then by margin, then by price; candidates that may
// not be used last.
function inOrder(candidates) {
  const rank = one => [one.is_chosen ? 0 : isOut(one) ? 3 : isMeasured(one) ? 1 : 2,
                       one.behind_us ?? Infinity, one.price_us];
  return candidates.sort((a, b) => {
    const left = rank(a), right = rank(b);
    const at = left.findIndex((value, index) => value !== right[index]);
    return at < 0 ? 0 : left[at] < right[at] ? -1 : 1;
  });
}

const candidatesOf = step => [...new Set(step.nodes.flatMap(node => byNode.get(node) || []))];

// Times are comparable only for the same nodes. So there is one entry for each set of nodes: first
// the step's own set, then its subsets in the step's order, then larger sets.
function groupsOf(step) {
  const place = new Map(step.nodes.map((node, index) => [node, index]));
  const groups = new Map();
  for (const one of candidatesOf(step)) {
    const key = JSON.stringify([...one.nodes].sort());
    if (!groups.has(key)) {
      const within = one.nodes.filter(node => place.has(node));
      groups.set(key, {nodes: one.nodes, within: within.length, candidates: [],
                       first: Math.min(...within.map(node => place.get(node))),
                       order: one.nodes.length > within.length ? 2
                         : within.length === step.nodes.length ? 0 : 1});
    }
    groups.get(key).candidates.push(one);
  }
  const found = [...groups.values()].sort((a, b) =>
    a.order - b.order || a.first - b.first || b.nodes.length - a.nodes.length);
  for (const group of found) inOrder(group.candidates);
  return found;
}

function groupTitle(group, step) {
  const all = step.nodes.length, nodes = group.nodes.length;
  if (group.order === 0) {
    return all === 1 ? "For this node" : all === 2 ? "For both nodes of this step"
      : `For all ${all} nodes of this step`;
  }
  if (group.order === 1) return `For ${group.within} of ${all} nodes: ${group.nodes.join(", ")}`;
  return `For ${nodes} nodes, ${group.within} of them in this step`;
}

// The sum of the cheapest measured times if each node is computed by its own kernel; null if a node
// has no measured time.
function oneByOne(step, groups) {
  let sum = 0;
  for (const node of step.nodes) {
    const alone = groups.find(group => group.nodes.length === 1 && group.nodes[0] === node);
    const least = Math.min(...(alone ? alone.candidates : []).filter(isMeasured)
      .map(one => one.price_us));
    if (!Number.isFinite(least)) return null;
    sum += least;
  }
  return sum;
}

function rivalOf(step) {
  return inOrder(candidatesOf(step)).find(one => !one.is_chosen && isMeasured(one) &&
                                                 one.behind_us != null);
}

// ---- Head.

function figure(title, value) {
  return element("div", {}, element("b", {}, value), element("span", {}, title));
}

function showHead() {
  // Many files are called model.onnx; the folder's name distinguishes them.
  const parts = plan.model.split("/").filter(Boolean);
  const file = cut(parts.slice(parts.at(-1) === "model.onnx" ? -2 : -1).join("/"), 80);
  document.title = `Plan of ${file}`;
  byId("title").textContent = `How Tessera runs ${file}`;
  byId("title").title = plan.model;
  const conversions = plan.conversion_count === 0 ? ""
    : `, ${plan.conversion_count} of which only ${plan.conversion_count === 1 ? "changes" : "change"} ` +
      "the layout of a tensor in memory";
  byId("summary").textContent =
    `The model is computed in ${counted(plan.step_count, "step")}${conversions}, on ` +
    `${counted(plan.thread_count, "thread")}. This page shows which library computes which step, ` +
    "how long that takes, and what else could have been chosen.";
  byId("measured").append(
    element("div", {class: "large"}, timeText(plan.median_us)),
    element("p", {}, `One run on this machine: the median of ${counted(plan.run_count, "run")}.`),
    element("div", {class: "figures"}, figure("memory for intermediate values", bytesText(plan.arena_bytes)),
            figure("packed weights", bytesText(plan.pack_bytes)),
            figure("kept by libraries", bytesText(plan.library_bytes))));
}

function showPrediction() {
  const choice = plan.placement, shown = byId("predicted");
  if (choice.predicted_us == null) {
    shown.append(element("p", {}, "This plan was chosen without measuring: each step went to the " +
      "first library that can compute it. tessera explain --optimize measures the times of all " +
      "libraries, and shows here how good the choice is."));
    return;
  }
  shown.append(element("div", {class: "large"}, timeText(choice.predicted_us)),
    element("p", {}, "The sum of the times that its steps took one by one. It is a " +
      "prediction: the time of the whole plan stands under Measured."));
  const above = choice.gap < 5e-5 ? "and this plan has that sum"
    : `and the sum of this plan is ${percent(choice.gap, 2)} higher` +
      (plan.placement.contenders.length > 1
        ? ": it was chosen for its measured time, not for its sum" : "");
  shown.append(element("p", {}, (choice.is_proven_optimal
    ? `Proof: no plan has a lower sum than ${timeText(choice.lower_bound_us)}, ${above}.`
    : `No proof: the search ended early. No plan has a lower sum than ` +
      `${timeText(choice.lower_bound_us)}, ${above}.`)));
  const figures = element("div", {class: "figures"},
    figure("to find plan and proof", timeText(choice.solve_us)));
  if (choice.isolated_us != null) {
    figures.append(figure("sum with kernels timed alone", timeText(choice.isolated_us)));
  }
  if (choice.build_us > 0) figures.append(figure("to build its kernels", timeText(choice.build_us)));
  shown.append(figures);
}

// ---- The comparison of whole plans.

// The contender's name, spelled as `tessera explain` spells it (placement_report.cc), and its
// meaning.
function contenderTexts({contender, backend, round}) {
  const [name, means] = {
    chosen: ["best by kernels timed alone", "the lowest sum, before whole plans were run"],
    known: ["plan of an earlier tuning", ""],
    solved: ["best by timed steps", "the lowest sum of the times that steps took in whole plans"],
    greedy: ["fastest kernel of each node", "one node after the other, by the same times"],
    in_order: ["plan without measuring", "without times: in the order of libraries"],
    alone: [`mostly ${backend}`, `${backend} wherever it can, others where it cannot`],
    unsplit: [`largest groups of ${backend}`, `${backend} wherever it can, in few parts`],
  }[contender] || [contender, ""];
  return round > 1 || contender === "solved" ? [`${name}, round ${Math.max(1, round)}`, means]
    : [name, means];
}

function resultText(contender, contenders) {
  const least = Math.min(...contenders.map(one => one.time.time_us));
  const slower = contender.time.time_us / least - 1;
  if (!contender.is_chosen) return slower === 0 ? "the shortest time" : `${percent(slower)} slower`;
  if (slower <= 0) return "used: the fastest";
  return slower < 0.0101
    ? `used: ${percent(slower, 2)} above the shortest time, which is noise, and first by price`
    : "used: the shortest time to build and run together";
}

function showRace() {
  const contenders = plan.placement.contenders;
  if (contenders.length === 0) return byId("race").remove();
  const low = Math.min(...contenders.map(one => one.time.low_us));
  const high = Math.max(...contenders.map(one => one.time.high_us));
  const at = us => 2 + 96 * (high > low ? (us - low) / (high - low) : .5);
  const table = byId("contenders");
  const titles = ["plan", "what it is", "one run", `${timeText(low)} to ${timeText(high)}`, "result"];
  table.prepend(element("colgroup", {}, ...["16%", "30%", "11%", "23%", "20%"].map(width =>
    element("col", {style: `width:${width}`}))));
  table.tHead.append(element("tr", {}, ...titles.map((title, index) =>
    element("th", {scope: "col", class: index === 2 ? "number" : ""}, title))));
  for (const contender of contenders) {
    const {time_us, low_us, high_us} = contender.time;
    const line = (x1, x2, y1, y2) => element("line", {x1, x2, y1, y2});
    const interval = element("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none",
        role: "img", "aria-label": `${timeText(low_us)} to ${timeText(high_us)}`},
      line(at(low_us), at(high_us), 5, 5), line(at(time_us), at(time_us), 1.5, 8.5));
    const [name, means] = contenderTexts(contender);
    table.tBodies[0].append(element("tr", {class: contender.is_chosen ? "chosen" : ""},
      element("td", {}, name), element("td", {}, means),
      element("td", {class: "number",
                     title: `${timeText(low_us)} to ${timeText(high_us)}`}, timeText(time_us)),
      element("td", {class: "interval"}, interval),
      element("td", {}, resultText(contender, contenders))));
  }
}

// ---- Details of a step.

let shownStep = -1;
let isKept = false;

// The uncertainty of the price, and the time that was measured alone if the price is higher because
// of concurrent steps.
function aloneText({time, price_us}) {
  const width = (time.high_us - time.low_us) / 2 / time.time_us;
  const sure = width > 0 ? ` ±\u00a0${percent(width, width < .1 ? 1 : 0)}` : "";
  return (Math.abs(time.time_us / price_us - 1) < .005 ? "" : `alone ${timeText(time.time_us)}`) + sure;
}

function candidateRow(one) {
  const kept = one.library_bytes + one.pack_bytes;
  const error = one.relative_error == null || !isMeasured(one) ? ""
    : one.relative_error === 0 ? "; exact" : `; error ${one.relative_error.toExponential(0)}`;
  const threads = one.thread_count !== plan.thread_count ? `, ${counted(one.thread_count, "thread")}`
    : "";
  return element("tr", {class: one.is_chosen ? "chosen" : isOut(one) ? "out" : ""},
    element("td", {}, nameOf(one) + threads, element("div", {class: "soft"},
      one.layouts + (kept ? `; keeps ${bytesText(kept)}` : "") + error)),
    element("td", {class: "number"}, isOut(one) ? "" : timeText(one.price_us),
            element("div", {class: "soft"}, one.time ? aloneText(one) : "")),
    element("td", {}, marginText(one)));
}

function candidatesTable(step) {
  const groups = groupsOf(step);
  const widths = ["44%", "24%", "32%"].map(width => element("col", {style: `width:${width}`}));
  const table = element("table", {}, element("colgroup", {}, ...widths),
    element("thead", {}, element("tr", {},
    element("th", {scope: "col"}, "who could compute it"),
    element("th", {scope: "col", class: "number", title: "the price that the choice uses"},
            "predicted"), element("th", {scope: "col"}, ""))));
  let hasParts = false;
  for (const group of groups.slice(0, kShownGroups)) {
    if (group.order === 1 && !hasParts) {
      hasParts = true;
      const sum = oneByOne(step, groups);
      if (sum != null) {
        table.append(element("tbody", {}, element("tr", {}, element("th", {colspan: 3},
          `One by one the ${step.nodes.length} nodes take ${timeText(sum)}, without conversions ` +
          "between them"))));
      }
    }
    const body = element("tbody", {class: group.order === 1 ? "part" : ""}, element("tr", {},
      element("th", {colspan: 3, scope: "rowgroup", title: group.nodes.slice(0, 50).join("\n")},
              cut(groupTitle(group, step), 160))));
    const told = group.candidates.filter(one => one.verdict !== "not_measured" || one.is_chosen);
    body.append(...told.slice(0, kShownCandidates).map(candidateRow));
    const note = text => body.append(element("tr", {class: "note"},
                                             element("td", {colspan: 3}, text)));
    if (told.length > kShownCandidates) note(`and ${told.length - kShownCandidates} more`);
    const unknown = group.candidates.filter(one => !told.includes(one));
    if (unknown.length > 0) {
      note(`${unknown.length} not measured, as bounds of their times say that they cannot win or ` +
        `as time was up: ${[...new Set(unknown.map(nameOf))].join(", ")}`);
    }
    table.append(body);
  }
  return [table, ...(groups.length > kShownGroups
    ? [element("p", {class: "soft"}, `and ${groups.length - kShownGroups} more sets of nodes`)] : [])];
}

function folded(title, lines) {
  return element("details", {}, element("summary", {}, title),
                 ...lines.map(line => element("p", {class: "soft"}, line)));
}

function show(index) {
  if (index === shownStep) return;
  shownStep = index;
  const step = steps[index];
  for (const shown of document.querySelectorAll(".shown")) shown.classList.remove("shown");
  for (const shown of document.querySelectorAll(`[data-step="${index}"]`)) shown.classList.add("shown");
  const priced = step.predicted_us == null ? "" : `, ${timeText(step.predicted_us)} predicted`;
  const details = byId("details");
  details.replaceChildren(
    element("h3", {}, `Step ${step.index}: ${step.op} ${step.name}`),
    element("p", {}, `${doerOf(step)}${step.algorithm ? ", " + step.algorithm : ""}: ` +
      `${timeText(step.median_us)} measured${priced}; ${bytesText(step.moved_bytes)} read and ` +
      `written, ${bytesText(step.workspace_bytes)} of workspace${step.is_in_place ? ", in place" : ""}`));
  if (step.nodes.length > 1) {
    details.append(folded(`covers ${step.nodes.length} nodes of the model`, [step.nodes.join(", ")]));
  }
  const portText = (kind, port) => `${kind} ${port.value}: ${port.tensor}, ${port.layout}` +
    (port.pack ? `, packed as ${port.pack}` : port.is_constant ? ", constant" : "");
  details.append(folded(`reads ${step.inputs.length}, makes ${counted(step.outputs.length, "value")}`,
    [...step.inputs.map(port => portText("reads", port)),
     ...step.outputs.map(port => portText("makes", port))]));
  if (step.refusals.length > 0) {
    details.append(folded(`refused by ${[...new Set(step.refusals.map(one => one.backend))].join(", ")}`,
      step.refusals.map(one => `${one.backend} refused ${one.node}: ${one.reason}`)));
  }
  if (plan.candidates.length > 0 && step.nodes.length > 0) details.append(...candidatesTable(step));
  details.scrollTop = 0;
}

// Pointing at a step shows it; a click, Enter, or moving to it with the keyboard pins it. In each
// list only one step can be reached by Tab; the arrow keys move to the others.
function watch(shown, index) {
  shown.dataset.step = index;
  shown.setAttribute("tabindex", "-1");
  shown.addEventListener("mouseenter", () => { if (!isKept) show(index); });
  shown.addEventListener("click", () => keep(index));
}

function keep(index) {
  isKept = true;
  show(index);
}

function moveWithin(list, items) {
  if (items.length === 0) return;
  items[0].setAttribute("tabindex", "0");
  list.addEventListener("focusin", event => {
    const item = event.target.closest("[data-step]");
    if (!item) return;
    for (const other of list.querySelectorAll('[tabindex="0"][data-step]')) {
      other.setAttribute("tabindex", "-1");
    }
    item.setAttribute("tabindex", "0");
    if (item.matches(":focus-visible")) keep(Number(item.dataset.step));
  });
  list.addEventListener("keydown", event => {
    const item = event.target.closest("[data-step]");
    if (!item) return;
    const all = [...list.querySelectorAll("[data-step]")], at = all.indexOf(item);
    const to = {ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1,
                Home: 0, End: all.length - 1}[event.key];
    if (event.key === "Enter" || event.key === " ") keep(Number(item.dataset.step));
    else if (to === undefined) return;
    event.preventDefault();
    all[to]?.focus();
  });
}

// ---- The bar.

function showBar() {
  const bar = byId("bar");
  if (isCompact) bar.classList.add("dense");
  const parts = [];
  steps.forEach((step, index) => {
    if (step.share <= 0) return;
    const label = `${step.op} ${step.name}: ${timeText(step.median_us)}, ${percent(step.share)}`;
    const part = element("span", {title: label, role: "option", "aria-label": label,
      style: `flex:${step.share} 1 0;background:${colourOf(step)}`});
    watch(part, index);
    parts.push(part);
  });
  bar.append(...parts);
  moveWithin(bar, parts);
  const nouns = {kernel: "step", conversion: "conversion", copy: "copy"};
  for (const total of plan.totals) {
    const count = total.kind === "copy" && total.step_count > 1 ? `${total.step_count} copies`
      : counted(total.step_count, nouns[total.kind]);
    byId("legend").append(element("span", {},
      element("i", {style: `background:${colourOf(total)}`}),
      `${doerOf(total)}: ${count}, ${timeText(total.median_us)} (${percent(total.share)})`));
  }
}

// ---- Tables that are sorted by a click on a title.

function makeTable(id, columns, rows) {
  const table = byId(id), body = table.tBodies[0];
  table.prepend(element("colgroup", {}, ...columns.map(column =>
    element("col", {style: `width:${column.width}`, class: column.isMinor ? "minor" : ""}))));
  const classOf = column => [column.isNumber && "number", column.isMinor && "minor",
                             column.wraps && "wraps", column.title].filter(Boolean).join(" ");
  const made = new Map(rows.map((row, index) => {
    const cells = columns.map(column => {
      const text = column.text ? column.text(row) : String(column.value(row));
      return element("td", {class: classOf(column), title: text}, text);
    });
    const line = element("tr", {class: row.kind === "conversion" ? "conversion" : ""}, ...cells);
    if (row.nodes) watch(line, index);
    return [row, line];
  }));
  const fill = ordered => body.replaceChildren(...ordered.map(row => made.get(row)));
  const head = element("tr");
  for (const column of columns) {
    const button = element("button", {type: "button"}, column.title);
    const title = element("th", {class: classOf(column), scope: "col", "aria-sort": "none",
                                 title: column.hint || column.title}, button);
    button.addEventListener("click", () => {
      const was = title.getAttribute("aria-sort");
      const isDown = column.isNumber ? was !== "descending" : was === "ascending";
      for (const other of head.children) other.setAttribute("aria-sort", "none");
      title.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const compare = (a, b) => {
        const left = column.value(a), right = column.value(b);
        return column.isNumber ? left - right : String(left).localeCompare(String(right));
      };
      fill([...rows].sort((a, b) => isDown ? compare(b, a) : compare(a, b)));
    });
    head.append(title);
  }
  table.tHead.append(head);
  fill(rows);
  if (rows.length > 0 && rows[0].nodes) moveWithin(body, [...made.values()]);
}

function showNestedSteps() {
  if (plan.nested_steps.length === 0) return byId("nested-section").remove();
  makeTable("nested", [
    {title: "graph", width: "34%", value: step => step.graph},
    {title: "name", width: "20%", value: step => step.name},
    {title: "op", width: "14%", value: step => step.op},
    {title: "backend", width: "6.5rem", value: step => step.doer},
    {title: "algorithm", width: "14%", isMinor: true, value: step => step.algorithm},
    {title: "runs", width: "4.2rem", isNumber: true, hint: "in a run of the model",
     value: step => step.runs},
    {title: "µs", width: "5.2rem", isNumber: true, hint: "all runs together, in microseconds",
     value: step => step.time, text: step => step.time == null ? "" : plain(step.time)},
  ], plan.nested_steps.map(step => ({graph: step.graph, name: step.name, op: step.op,
                                     doer: doerOf(step), algorithm: step.algorithm,
                                     runs: step.run_count, time: step.median_us})));
}

function showTables() {
  const hasPrices = plan.placement.predicted_us != null;
  const columns = [
    {title: "step", width: "3.6rem", isNumber: true, value: step => step.index},
    {title: "name", width: "17%", value: step => step.name},
    {title: "op", width: "14%", value: step => step.op},
    {title: "nodes", width: "4.2rem", isNumber: true, isMinor: true, hint: "nodes that it covers",
     value: step => step.nodes.length},
    {title: "backend", width: "6.5rem", value: doerOf},
    {title: "algorithm", width: "11%", isMinor: true, value: step => step.algorithm},
    {title: "layouts", width: "15%", isMinor: true, value: layoutText},
    {title: "µs", width: "5.2rem", isNumber: true, hint: "measured, in microseconds",
     value: step => step.median_us, text: step => plain(step.median_us)},
    {title: "share", width: "4.8rem", isNumber: true, hint: "of the time of all steps",
     value: step => step.share, text: step => percent(step.share)},
  ];
  if (hasPrices) {
    columns.splice(8, 0, {title: "predicted µs", width: "6.8rem", isNumber: true, isMinor: true,
                          value: step => step.predicted_us, text: step => plain(step.predicted_us)});
    columns.push({title: "closest other choice", width: "28%", wraps: true, value: step => {
      const rival = rivalOf(step);
      if (!rival) return "";
      const within = rival.nodes.filter(node => step.nodes.includes(node)).length;
      const part = rival.nodes.length > within ? ` for ${rival.nodes.length} nodes`
        : within < step.nodes.length ? ` for ${within} of ${step.nodes.length} nodes` : "";
      return `${nameOf(rival)}${part}: ${marginText(rival)}`;
    }});
  }
  makeTable("steps", columns, steps);
  showNestedSteps();
  if (plan.conversions.length === 0) return byId("conversions-section").remove();
  const timeOrLast = one => one.time ? one.time.time_us : Infinity;
  makeTable("conversions", [
    {title: "from", width: "22%", value: one => one.from_layout},
    {title: "to", width: "22%", value: one => one.to_layout},
    {title: "backend", width: "14%", value: one => one.backend || "Tessera itself"},
    {title: "type", width: "12%", value: one => one.type},
    {title: "size", width: "12%", isNumber: true, value: one => one.size_bytes,
     text: one => bytesText(one.size_bytes)},
    {title: "µs", width: "18%", isNumber: true, value: timeOrLast,
     text: one => one.time ? plain(one.time.time_us) : one.reason},
  ], plan.conversions);
}

