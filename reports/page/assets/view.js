// Where one looks: a stretch of cycles and how far the lanes are scrolled.

const LABELS = 152, HEAD = 62, SHORTEST = 4; // pixels of labels, of axis and launches; cycles of the closest zoom

function newView(meta) {
  return { from: 0, to: meta.cycles, scroll: 0, lane: 0, width: 1, height: 1, selected: -1, hover: -1, only: false };
}

function fitLanes(view, meta) {
  const room = view.height - HEAD - 2;
  view.lane = view.lane || Math.max(4, Math.min(22, Math.floor(room / meta.lanes.length)));
  clampScroll(view, meta);
}

function clampScroll(view, meta) {
  const most = Math.max(0, meta.lanes.length * view.lane - (view.height - HEAD - 2));
  view.scroll = Math.max(0, Math.min(most, view.scroll));
}

function plotWidth(view) { return Math.max(1, view.width - LABELS); }
function cycleAt(view, x) { return view.from + (x - LABELS) * (view.to - view.from) / plotWidth(view); }
function xOf(view, cycle) { return LABELS + (cycle - view.from) * plotWidth(view) / (view.to - view.from); }
function laneAt(view, meta, y) {
  const lane = Math.floor((y - HEAD + view.scroll) / view.lane);
  return y < HEAD || lane < 0 || lane >= meta.lanes.length ? -1 : lane;
}
function yOf(view, lane) { return HEAD - view.scroll + lane * view.lane; }

function zoom(view, meta, factor, x) {
  const centre = cycleAt(view, Math.max(LABELS, Math.min(view.width, x)));
  const span = Math.max(SHORTEST, Math.min(meta.cycles, (view.to - view.from) * factor));
  const part = (centre - view.from) / (view.to - view.from);
  show(view, meta, centre - part * span, centre + (1 - part) * span);
}

function show(view, meta, from, to) {
  const span = Math.min(meta.cycles, Math.max(SHORTEST, to - from));
  view.from = Math.max(0, Math.min(meta.cycles - span, from));
  view.to = view.from + span;
}

function move(view, meta, share) {
  const step = share * (view.to - view.from);
  show(view, meta, view.from + step, view.to + step);
}

// Bring a row into view, keeping the zoom unless the row would be too small or too large to be seen.
function reveal(view, trace, row) {
  const start = trace.start[row], end = trace.end[row], span = view.to - view.from;
  if (end - start > span * 0.9) show(view, trace.meta, start - (end - start) * 0.1, end + (end - start) * 0.1);
  else if (start < view.from || end > view.to) show(view, trace.meta, (start + end - span) / 2, (start + end + span) / 2);
  const y = trace.lane[row] * view.lane, room = view.height - HEAD;
  if (y < view.scroll || y + view.lane > view.scroll + room) view.scroll = y - room / 2;
  clampScroll(view, trace.meta);
}
