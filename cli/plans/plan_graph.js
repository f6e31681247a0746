// The plan as a graph, drawn by Sugiyama's method: layers from top to bottom; an edge across
// several layers is a chain of thin vertices; to reduce crossings, each vertex moves towards the
// mean position of its neighbours.

const kMostThinVertices = 20000;

function edgesOfSteps() {
  const maker = new Map();  // "value|layout" -> step
  const edges = [];
  steps.forEach((step, index) => {
    const from = new Set();
    for (const port of step.inputs) {
      const source = maker.get(`${port.value}|${port.layout}`);
      if (source !== undefined && source !== index) from.add(source);
    }
    for (const source of from) edges.push([source, index]);
    for (const port of step.outputs) maker.set(`${port.value}|${port.layout}`, index);
  });
  return edges;
}

function layOut(edges, width, height, gapX, gapY) {
  const layer = steps.map(() => 0);
  for (const [from, to] of edges) layer[to] = Math.max(layer[to], layer[from] + 1);
  // Edges across many layers would create more thin vertices than a browser can lay out quickly.
  // Edges longer than this are drawn directly from end to end.
  let most = layer.reduce((high, one) => Math.max(high, one), 0);
  const thin = () => edges.reduce((sum, [from, to]) => {
    const passed = layer[to] - layer[from] - 1;
    return sum + (passed <= most ? passed : 0);
  }, 0);
  while (most > 0 && thin() > kMostThinVertices) most = Math.floor(most / 2);
  const vertices = steps.map((step, index) => ({layer: layer[index], width, x: 0, up: [], down: []}));
  const chains = edges.map(([from, to]) => {
    const chain = [from];
    const isLong = layer[to] - layer[from] - 1 > most;
    for (let at = layer[from] + 1; at < layer[to] && !isLong; ++at) {
      chain.push(vertices.length);
      vertices.push({layer: at, width: 8, x: 0, up: [], down: []});
    }
    chain.push(to);
    for (let place = 1; place < chain.length; ++place) {
      vertices[chain[place]].up.push(chain[place - 1]);
      vertices[chain[place - 1]].down.push(chain[place]);
    }
    return chain;
  });
  const layers = [];
  vertices.forEach((vertex, index) => (layers[vertex.layer] ||= []).push(index));
  const spread = row => {
    let x = 0;
    for (const index of row) {
      vertices[index].x = x + vertices[index].width / 2;
      x += vertices[index].width + gapX;
    }
    for (const index of row) vertices[index].x -= (x - gapX) / 2;
  };
  layers.forEach(spread);
  const middle = (index, side) => {
    const others = vertices[index][side];
    if (others.length === 0) return vertices[index].x;
    return others.reduce((sum, other) => sum + vertices[other].x, 0) / others.length;
  };
  // Moves the vertices towards their wanted positions, keeping their order and without overlap:
  // from the left, then from the right, and takes the mean of the two.
  const settle = (row, wanted) => {
    const apart = (a, b) => (vertices[a].width + vertices[b].width) / 2 + gapX;
    const left = [], right = [];
    row.forEach((index, place) => {
      left[place] = place === 0 ? wanted[place]
        : Math.max(wanted[place], left[place - 1] + apart(row[place - 1], index));
    });
    for (let place = row.length - 1; place >= 0; --place) {
      right[place] = place === row.length - 1 ? wanted[place]
        : Math.min(wanted[place], right[place + 1] - apart(row[place], row[place + 1]));
    }
    row.forEach((index, place) => { vertices[index].x = (left[place] + right[place]) / 2; });
  };
  for (let round = 0; round < 8; ++round) {
    const side = round % 2 === 0 ? "up" : "down";
    const order = round % 2 === 0 ? layers : [...layers].reverse();
    for (const row of order) {
      const wanted = new Map(row.map(index => [index, middle(index, side)]));
      if (round < 6) row.sort((a, b) => wanted.get(a) - wanted.get(b));
      settle(row, row.map(index => wanted.get(index)));
    }
  }
  const lefts = vertices.map(vertex => vertex.x - vertex.width / 2);
  const shift = lefts.reduce((least, left) => Math.min(least, left), Infinity);
  for (const vertex of vertices) {
    vertex.x += gapX - shift;
    vertex.y = gapY + vertex.layer * (height + gapY) + height / 2;
  }
  const rights = vertices.map(vertex => vertex.x + vertex.width / 2);
  return {vertices, chains, width: rights.reduce((most, right) => Math.max(most, right), 0) + gapX,
          height: layers.length * (height + gapY) + gapY};
}

// Removes the middle of a text that is too long, because names differ at both ends.
function cut(text, most) {
  return text.length <= most ? text
    : text.slice(0, Math.ceil(most / 2) - 1) + "…" + text.slice(text.length - Math.floor(most / 2));
}

// Same as cut(), limited by width in pixels of `font`.
const measure = document.createElement("canvas").getContext("2d");
function fit(text, width, font) {
  measure.font = font;
  const isFine = most => measure.measureText(cut(text, most)).width <= width;
  // Each character is at least one pixel wide, so more characters than pixels never fit.
  let low = 1, high = Math.min(text.length, Math.ceil(width));
  if (isFine(high) && high === text.length) return text;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isFine(middle)) low = middle; else high = middle - 1;
  }
  return cut(text, low);
}

function pathOf(chain, vertices, height) {
  let path = "";
  for (let place = 1; place < chain.length; ++place) {
    const from = vertices[chain[place - 1]], to = vertices[chain[place]];
    // Edges go straight down beside the boxes of a layer, so that they bend only between layers.
    const y0 = from.y + height / 2, y1 = to.y - height / 2, bend = (y1 - y0) / 2;
    path += `${place === 1 ? `M${from.x} ` : "V"}${y0}` +
            `C${from.x} ${y0 + bend} ${to.x} ${y1 - bend} ${to.x} ${y1}`;
  }
  return path;
}

function boxOf(step, index, vertex, width, height) {
  const isView = step.kind === "kernel" && step.median_us === 0;
  const kind = isConversion(step) ? " conversion" : isView ? " view" : "";
  const name = `${step.op} ${step.name}`;
  const below = `${isConversion(step) ? layoutText(step) : doerOf(step)} · ` +
    (isView ? "no work" : timeText(step.median_us));
  const label = `step ${step.index}: ${name}, ${below}`;
  const box = element("g", {class: "step" + kind, role: "option", "aria-label": label,
    transform: `translate(${vertex.x - width / 2} ${vertex.y - height / 2})`});
  box.append(element("title", {}, label),
             element("rect", {width, height, rx: 4, fill: colourOf(step), stroke: colourOf(step)}));
  const font = size => `${size}px system-ui, sans-serif`;
  if (isCompact) {
    box.append(element("text", {x: 5, y: 12}, fit(name, width - 10, font(11))));
  } else {
    box.append(element("text", {x: 8, y: 15}, fit(name, width - 16, font(11))),
               element("text", {x: 8, y: 29, class: "under"}, fit(below, width - 16, font(10))));
  }
  watch(box, index);
  return box;
}

function showGraph() {
  const width = isCompact ? 150 : 190, height = isCompact ? 16 : 36;
  const gapX = isCompact ? 8 : 16, gapY = isCompact ? 9 : 22;
  if (steps.length === 0) return;
  const placed = layOut(edgesOfSteps(), width, height, gapX, gapY);
  // A wide graph is scaled down, but not so far that it becomes unreadable.
  const svg = element("svg", {width: placed.width, role: "presentation",
                              style: `min-width:${Math.round(.65 * placed.width)}px`,
                              viewBox: `0 0 ${placed.width} ${placed.height}`});
  svg.append(...placed.chains.map(chain =>
    element("path", {d: pathOf(chain, placed.vertices, height)})));
  const boxes = steps.map((step, index) => boxOf(step, index, placed.vertices[index], width, height));
  svg.append(...boxes);
  const graph = byId("graph");
  graph.append(svg);
  graph.scrollLeft = (graph.scrollWidth - graph.clientWidth) / 2;
  moveWithin(graph, boxes);
}

// ---- Builds the page.

showHead();
showPrediction();
showRace();
showBar();
showGraph();
showTables();
if (steps.length > 0) {
  show(steps.reduce((most, step, index) => step.median_us > steps[most].median_us ? index : most, 0));
} else {
  byId("details").textContent = "This plan has no steps: there is nothing left to compute.";
}
addEventListener("keydown", event => { if (event.key === "Escape") isKept = false; });
