// Painting. Each lane is one row of pixels that is made from the typed arrays: many instructions in a pixel become its
// colour and shade, so that a picture costs one pass over what is visible, however far one looks from.

const STEPS = 16; // shades between the background and a colour
const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

function rgb(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// Shades of the colours on a background, as the 32-bit values of pixels.
function shades(colours, background, most) {
  const table = new Uint32Array(colours.length * (STEPS + 1)), back = rgb(background);
  colours.forEach((colour, code) => {
    const full = rgb(colour);
    for (let step = 0; step <= STEPS; step++) {
      const part = most * step / STEPS;
      const [r, g, b] = full.map((value, i) => Math.round(value * part + back[i] * (1 - part)));
      table[code * (STEPS + 1) + step] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
  });
  return table;
}

function newPainter(canvas, trace) {
  const colours = trace.meta.colours, names = trace.meta.names.length;
  const vivid = shades(colours, "#ffffff", 1), dim = shades(colours, "#ffffff", 0.22);
  const table = new Uint32Array(vivid.length + dim.length);
  table.set(vivid);
  table.set(dim, vivid.length);
  return { canvas, context: canvas.getContext("2d"), trace, table, names, scale: 1, image: null, line: null };
}

function resize(painter, view) {
  const box = painter.canvas.getBoundingClientRect();
  painter.scale = window.devicePixelRatio || 1;
  view.width = box.width;
  view.height = box.height;
  painter.canvas.width = Math.round(box.width * painter.scale);
  painter.canvas.height = Math.round(box.height * painter.scale);
  fitLanes(view, painter.trace.meta);
}

function paint(painter, view) {
  const { context, scale } = painter;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, view.width, view.height);
  paintLanes(painter, view);
  context.font = FONT;
  context.textBaseline = "middle";
  paintNames(painter, view);
  paintLabels(painter, view);
  paintHead(painter, view);
  if (view.selected >= 0) paintChain(painter, view);
  if (view.hover >= 0 && view.hover !== view.selected) outline(painter, view, view.hover, "#1f2933", 1);
}

function paintLanes(painter, view) {
  const width = Math.round(plotWidth(view) * painter.scale), top = Math.round(HEAD * painter.scale);
  const height = Math.max(1, painter.canvas.height - top);
  if (!painter.image || painter.image.width !== width || painter.image.height !== height) {
    painter.image = painter.context.createImageData(width, height);
    painter.line = { cover: new Float32Array(width), best: new Float32Array(width), code: new Uint16Array(width) };
    painter.row = new Uint32Array(width);
  }
  const pixels = new Uint32Array(painter.image.data.buffer).fill(0xffffffff);
  const gap = view.lane >= 6 ? painter.scale : 0;
  painter.trace.meta.lanes.forEach((_, lane) => {
    const upper = Math.round((yOf(view, lane) - HEAD) * painter.scale);
    const lower = Math.round((yOf(view, lane + 1) - HEAD) * painter.scale - gap);
    if (lower <= 0 || upper >= height) return;
    fillLine(painter, view, lane, width);
    for (let y = Math.max(0, upper); y < Math.min(height, lower); y++) pixels.set(painter.row, y * width);
  });
  painter.context.putImageData(painter.image, Math.round(LABELS * painter.scale), top);
}

// The pixels of one lane: how much of each is covered, and by which instruction most.
function fillLine(painter, view, lane, width) {
  const { trace, line, names } = painter, { cover, best, code } = line;
  const { start, end, name, onPath } = trace, perCycle = width / (view.to - view.from);
  cover.fill(0);
  best.fill(0);
  const [low, high] = rowsBetween(trace, lane, view.from, view.to);
  for (let row = low; row < high; row++) {
    const left = Math.max(0, (start[row] - view.from) * perCycle);
    const right = Math.min(width, (end[row] - view.from) * perCycle);
    if (right <= left) continue;
    const value = name[row] + (view.only && !onPath[row] ? names : 0);
    const first = left | 0, last = Math.min(width - 1, right | 0);
    add(line, first, Math.min(right, first + 1) - left, value);
    for (let x = first + 1; x < last; x++) { cover[x] = 1; best[x] = 1; code[x] = value; }
    if (last > first) add(line, last, right - last, value);
  }
  shadeLine(painter, width);
}

function add(line, x, part, value) {
  line.cover[x] += part;
  if (part > line.best[x]) { line.best[x] = part; line.code[x] = value; }
}

function shadeLine(painter, width) {
  const { cover, code } = painter.line, { row, table } = painter;
  for (let x = 0; x < width; x++) {
    const part = cover[x] > 1 ? 1 : cover[x];
    row[x] = part > 0 ? table[code[x] * (STEPS + 1) + Math.max(3, Math.round(part * STEPS))] : 0xfff8f6f5;
  }
}

// Names of instructions that are wide enough on screen.
function paintNames(painter, view) {
  if (view.lane < 11) return;
  const { context, trace } = painter, least = 34 * (view.to - view.from) / plotWidth(view);
  trace.meta.lanes.forEach((_, lane) => {
    const y = yOf(view, lane);
    if (y + view.lane < HEAD || y > view.height) return;
    const [low, high] = rowsBetween(trace, lane, view.from, view.to);
    if (high - low > plotWidth(view)) return;
    for (let row = low; row < high; row++) {
      if (Math.min(trace.end[row], view.to) - Math.max(trace.start[row], view.from) < least) continue;
      const left = Math.max(LABELS, xOf(view, trace.start[row])), right = Math.min(view.width, xOf(view, trace.end[row]));
      const text = trace.meta.names[trace.name[row]];
      if (context.measureText(text).width > right - left - 8) continue;
      context.fillStyle = view.only && !trace.onPath[row] ? "#66727f" : trace.meta.inks[trace.name[row]];
      context.fillText(text, left + 4, y + view.lane / 2);
    }
  });
}

function paintLabels(painter, view) {
  const { context, trace } = painter, { lanes, cores } = trace.meta;
  context.fillStyle = "#fff";
  context.fillRect(0, HEAD, LABELS, view.height - HEAD);
  let free = HEAD;
  lanes.forEach((lane, place) => {
    const y = yOf(view, place), opens = place === 0 || lanes[place - 1].core !== lane.core;
    if (y + view.lane < HEAD || y > view.height) return;
    if (opens && y >= HEAD) {
      context.fillStyle = "#d9dfe5";
      context.fillRect(0, Math.round(y) - 1, view.width, 1);
    }
    const middle = Math.max(y, HEAD) + Math.max(6, view.lane / 2);
    if (opens && middle - 6 >= free) {
      context.fillStyle = "#1f2933";
      context.fillText(cores[lane.core], 4, middle);
      free = middle + 6;
    }
    if (view.lane >= 10) {
      context.fillStyle = "#66727f";
      context.textAlign = "right";
      context.fillText(lane.name, LABELS - 5, y + view.lane / 2);
      context.textAlign = "left";
    }
  });
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least);
}

// Axis, launches and critical path, above the lanes.
function paintHead(painter, view) {
  const { context, trace } = painter, { meta } = trace;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, view.width, HEAD);
  context.save();
  context.beginPath();
  context.rect(LABELS, 0, view.width, view.height);
  context.clip();
  const step = niceStep(100 * (view.to - view.from) / plotWidth(view));
  for (let cycle = Math.ceil(view.from / step) * step; cycle <= view.to; cycle += step) {
    const x = Math.round(xOf(view, cycle));
    context.fillStyle = "rgba(31, 41, 51, 0.10)";
    context.fillRect(x, 16, 1, view.height);
    context.fillStyle = "#66727f";
    context.fillText(cycle.toLocaleString("en"), x + 3, 9);
  }
  meta.launches.forEach((launch, i) => band(painter, view, launch.start, launch.end, 20, i % 2 ? "#dde6ee" : "#c9d6e2", launch.name));
  for (let i = 0; i < trace.pathStart.length; i++) {
    if (trace.pathEnd[i] < view.from || trace.pathStart[i] > view.to) continue;
    band(painter, view, trace.pathStart[i], trace.pathEnd[i], 40, meta.reasonColours[trace.pathReason[i]], "");
  }
  context.restore();
  context.fillStyle = "#66727f";
  ["cycles", "launches", "critical path"].forEach((text, i) => context.fillText(text, 4, [9, 28, 48][i]));
}

function band(painter, view, start, end, y, colour, text) {
  const { context } = painter;
  const left = Math.round(Math.max(LABELS, xOf(view, start))), right = Math.round(Math.min(view.width, xOf(view, end)));
  if (right < left) return;
  context.fillStyle = colour;
  context.fillRect(left, y, Math.max(0.5, right - left), 16);
  if (text && context.measureText(text).width < right - left - 8) {
    context.fillStyle = "#1f2933";
    context.fillText(text, left + 4, y + 8);
  }
}

function outline(painter, view, row, colour, width) {
  const { context, trace } = painter, y = yOf(view, trace.lane[row]);
  if (y + view.lane < HEAD || trace.end[row] < view.from || trace.start[row] > view.to) return;
  const left = Math.max(LABELS, xOf(view, trace.start[row])), right = Math.min(view.width, xOf(view, trace.end[row]));
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(left - 0.5, Math.max(HEAD, y) - 0.5, Math.max(2, right - left) + 1, view.lane);
}

// The chain through the selected row: what it depends on in one colour, what it delayed in another.
function paintChain(painter, view) {
  const { context, trace } = painter, before = backward(trace, view.selected, 2000), after = forward(trace, view.selected, 2000);
  context.save();
  context.beginPath();
  context.rect(LABELS, HEAD, view.width, view.height);
  context.clip();
  trail(painter, view, [view.selected, ...before], "#a4161a", true);
  trail(painter, view, [view.selected, ...after], "#1d4ed8", false);
  outline(painter, view, view.selected, "#111", 2.5);
  context.restore();
}

function trail(painter, view, rows, colour, back) {
  const { context, trace } = painter;
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  for (let i = 0; i + 1 < rows.length; i++) {
    const [early, late] = back ? [rows[i + 1], rows[i]] : [rows[i], rows[i + 1]];
    const left = Math.min(trace.end[early], trace.start[late]);
    if (trace.start[late] < view.from || left > view.to) continue;
    context.moveTo(xOf(view, left), yOf(view, trace.lane[early]) + view.lane / 2);
    context.lineTo(xOf(view, trace.start[late]), yOf(view, trace.lane[late]) + view.lane / 2);
  }
  context.stroke();
  rows.slice(1, 200).forEach((row) => outline(painter, view, row, colour, 1.4));
}
