// Events and keys; everything is drawn once a frame at most.

function rowAt(trace, view, x, y) {
  const lane = laneAt(view, trace.meta, y);
  if (lane < 0 || x < LABELS) return -1;
  const cycle = cycleAt(view, x), near = 2 * (view.to - view.from) / plotWidth(view);
  const [low, high] = rowsBetween(trace, lane, cycle - near, cycle + near);
  let best = -1, score = -Infinity;
  for (let row = low; row < high; row++) {
    const inside = trace.start[row] <= cycle && cycle < trace.end[row];
    const value = (inside ? 1e12 : 0) + trace.end[row] - trace.start[row];
    if (value > score) { score = value; best = row; }
  }
  return best;
}

function listen(app) {
  const { canvas, view, trace, redraw, select } = app;
  let drag = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x] = at(event), down = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    if (event.shiftKey) scrollLanes(app, down || event.deltaX);
    else if (Math.abs(event.deltaX) > Math.abs(down)) move(view, trace.meta, event.deltaX / plotWidth(view));
    else zoom(view, trace.meta, Math.exp(Math.max(-240, Math.min(240, down)) * 0.002), x);
    redraw();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { at: at(event), from: view.from, to: view.to, scroll: view.scroll, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drag && (drag.moved || Math.hypot(x - drag.at[0], y - drag.at[1]) > 4)) {
      const cycles = (drag.at[0] - x) * (drag.to - drag.from) / plotWidth(view);
      drag.moved = true;
      show(view, trace.meta, drag.from + cycles, drag.to + cycles);
      view.scroll = drag.scroll + drag.at[1] - y;
      clampScroll(view, trace.meta);
    }
    view.hover = drag && drag.moved ? -1 : rowAt(trace, view, x, y);
    tip(trace, view.hover, x, y);
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) select(rowAt(trace, view, ...at(event)), false);
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { view.hover = -1; tip(trace, -1); redraw(); });
  canvas.addEventListener("dblclick", (event) => zoomTo(app, rowAt(trace, view, ...at(event))));
  canvas.addEventListener("keydown", (event) => {
    const action = KEYS[event.key] || KEYS[event.key.toLowerCase()];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action(app);
    redraw();
  });
  const buttons = { whole: "0", closer: "+", wider: "-", taller: "]", flatter: "[", path: "c" };
  for (const [id, key] of Object.entries(buttons)) {
    document.getElementById(id).addEventListener("click", () => { KEYS[key](app); redraw(); });
  }
  new ResizeObserver(() => { resize(app.painter, view); redraw(); }).observe(canvas);
}

function scrollLanes(app, pixels) {
  app.view.scroll += pixels;
  clampScroll(app.view, app.trace.meta);
}

function laneHeight(app, factor) {
  app.view.lane = Math.max(3, Math.min(40, Math.round(app.view.lane * factor)));
  clampScroll(app.view, app.trace.meta);
}

function middle(app) {
  const { view, trace } = app, row = view.selected;
  const inside = row >= 0 && trace.end[row] > view.from && trace.start[row] < view.to;
  return inside ? xOf(view, (Math.max(trace.start[row], view.from) + Math.min(trace.end[row], view.to)) / 2)
    : LABELS + plotWidth(view) / 2;
}

// The next instruction of the selected one's engine; at first the first that is visible.
function neighbour(app, step) {
  const { view, trace } = app, { lanes } = trace.meta;
  if (view.selected >= 0) {
    const lane = lanes[trace.lane[view.selected]], row = view.selected + step;
    app.select(row >= lane.first && row < lane.last ? row : view.selected);
    return;
  }
  for (let lane = laneAt(view, trace.meta, HEAD + 1); lane >= 0 && lane < lanes.length; lane++) {
    const [low, high] = rowsBetween(trace, lane, view.from, view.to);
    if (high > low) { app.select(low); return; }
  }
}

function follow(app, other) {
  if (app.view.selected >= 0 && other >= 0) app.select(other);
}

function zoomTo(app, row) {
  const { view, trace } = app;
  if (row < 0) return;
  const around = Math.max(2, trace.end[row] - trace.start[row]) * 0.6;
  show(view, trace.meta, trace.start[row] - around, trace.end[row] + around);
  app.redraw();
}

const KEYS = {
  "+": (app) => zoom(app.view, app.trace.meta, 0.6, middle(app)),
  "=": (app) => zoom(app.view, app.trace.meta, 0.6, middle(app)),
  "-": (app) => zoom(app.view, app.trace.meta, 1 / 0.6, middle(app)),
  "0": (app) => show(app.view, app.trace.meta, 0, app.trace.meta.cycles),
  ArrowLeft: (app) => move(app.view, app.trace.meta, -0.15),
  ArrowRight: (app) => move(app.view, app.trace.meta, 0.15),
  ArrowUp: (app) => scrollLanes(app, -3 * app.view.lane),
  ArrowDown: (app) => scrollLanes(app, 3 * app.view.lane),
  "]": (app) => laneHeight(app, 1.4),
  "[": (app) => laneHeight(app, 1 / 1.4),
  n: (app) => neighbour(app, 1),
  p: (app) => neighbour(app, -1),
  d: (app) => follow(app, app.trace.cause[app.view.selected]),
  f: (app) => follow(app, latest(app.trace, app.view.selected)),
  z: (app) => zoomTo(app, app.view.selected),
  c: (app) => {
    app.view.only = !app.view.only;
    document.getElementById("path").setAttribute("aria-pressed", String(app.view.only));
  },
  Escape: (app) => app.select(-1),
};

async function start() {
  const meta = JSON.parse(document.getElementById("meta").textContent);
  const trace = { meta, ...(await readColumns(meta)) };
  const canvas = document.getElementById("canvas"), view = newView(meta), painter = newPainter(canvas, trace);
  let asked = false;
  const now = () => {
    asked = false;
    const begin = performance.now();
    paint(painter, view);
    app.painted += 1;
    app.paintMs = performance.now() - begin;
    const us = (cycle) => (cycle / meta.clockMhz).toLocaleString("en", { maximumFractionDigits: 3 });
    document.getElementById("window").textContent =
      `cycles ${number(Math.round(view.from))} to ${number(Math.round(view.to))} (${us(view.from)} to ${us(view.to)} µs)`;
  };
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(now); } };
  const select = (row, bring = true) => {
    view.selected = row;
    if (row >= 0 && bring) reveal(view, trace, row);
    detail(trace, row, select);
    redraw();
  };
  const app = { canvas, view, trace, painter, redraw, select, painted: 0, paintMs: 0, firstPicture: 0 };
  window.tilesim = app;
  resize(painter, view);
  now();
  app.firstPicture = performance.now();
  trace.after = followers(trace.cause);
  legend(trace);
  listen(app);
}

start();
