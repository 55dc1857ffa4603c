// What is said of an instruction: beside the mouse, and below the timeline when it is selected.

function number(value) { return value.toLocaleString("en"); }

function place(trace, row) {
  const lane = trace.meta.lanes[trace.lane[row]];
  return `${trace.meta.cores[lane.core]} ${lane.name}`;
}

function tile(trace, row) {
  const known = trace.meta.axes.map((axis, i) => [axis, trace[`axis${i}`][row]]).filter(([, at]) => at >= 0);
  return known.map(([axis, at]) => `${axis} ${at}`).join(", ");
}

function moved(trace, row) {
  const { memories } = trace.meta;
  if (!trace.bytes[row]) return "";
  const ends = [trace.source[row], trace.destination[row]].map((code) => memories[code] || "?");
  return `${number(trace.bytes[row])} B, ${ends[0]} to ${ends[1]}`;
}

// Why a row started when it did, in words.
function why(trace, row) {
  const reason = trace.meta.reasons[trace.reason[row]], other = trace.cause[row];
  const of = other >= 0 ? `${trace.meta.names[trace.name[other]]} on ${place(trace, other)}` : "";
  const words = {
    dependency: `the result of ${of || "another engine"}`,
    engine: `its engine, busy with ${of || "the one before"}`,
    barrier: `a barrier${of ? ` (${of})` : ""}`,
    flag: `a flag${of ? ` set by ${of}` : ""}`,
  };
  return words[reason] || (of ? `its issue, after ${of}` : "its issue");
}

function describe(trace, row) {
  const lines = [
    ["instruction", trace.meta.names[trace.name[row]]],
    ["where", place(trace, row)],
    ["tile", tile(trace, row)],
    ["cycles", `${number(trace.start[row])} to ${number(trace.end[row])}: ${number(trace.end[row] - trace.start[row])}`],
    ["bytes", moved(trace, row)],
    ["issued", number(trace.issued[row])],
    ["bytes flow from", trace.bytes[row] && trace.flow[row] > trace.start[row] ? number(trace.flow[row]) : ""],
    ["waited for", why(trace, row)],
    ["critical path", trace.onPath[row] ? "on it" : ""],
  ];
  return lines.filter(([, text]) => text !== "");
}

function element(tag, text, parent, attributes) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  Object.assign(made, attributes || {});
  if (parent) parent.append(made);
  return made;
}

function tip(trace, row, x, y) {
  const box = document.getElementById("tip");
  box.hidden = row < 0;
  if (row < 0) return;
  box.textContent = describe(trace, row).map(([name, text]) => `${name}: ${text}`).join("\n");
  const frame = box.parentElement.getBoundingClientRect();
  box.style.left = `${x + 16 + box.offsetWidth > frame.width ? Math.max(0, x - box.offsetWidth - 12) : x + 16}px`;
  box.style.top = `${Math.max(0, Math.min(frame.height - box.offsetHeight - 4, y + 12))}px`;
}

function detail(trace, row, select) {
  const box = document.getElementById("detail");
  box.replaceChildren();
  if (row < 0) {
    element("p", "Nothing is selected: click an instruction, or press N.", box, { className: "faint" });
    return;
  }
  element("h3", `${trace.meta.names[trace.name[row]]} on ${place(trace, row)}`, box);
  const columns = element("div", "", box, { className: "columns" });
  const list = element("dl", "", element("div", "", columns));
  for (const [name, text] of describe(trace, row)) {
    element("dt", name, list);
    element("dd", text, list);
  }
  const before = backward(trace, row, 100000), direct = delayed(trace, row);
  chain(trace, columns, `Depends on (${number(before.length)} back to the launch's begin)`, before.slice(0, 9), select);
  direct.sort((a, b) => trace.onPath[b] - trace.onPath[a] || trace.end[b] - trace.end[a]);
  chain(trace, columns, `Delayed (${number(direct.length)} directly)`, direct.slice(0, 9), select);
}

function chain(trace, parent, title, rows, select) {
  const part = element("div", "", parent);
  element("h4", title, part);
  const list = element("ol", "", part);
  if (!rows.length) element("li", "nothing", list, { className: "faint" });
  for (const row of rows) {
    const text = `${trace.meta.names[trace.name[row]]} on ${place(trace, row)}, ${number(trace.start[row])} to ${number(trace.end[row])}`;
    const item = element("li", "", list);
    element("button", text, item, { type: "button", className: "link", onclick: () => select(row) });
    if (trace.onPath[row]) element("span", " critical", item, { className: "faint" });
  }
}

function legend(trace) {
  const box = document.getElementById("legend"), { meta } = trace;
  const part = (title, pairs) => {
    element("b", title, box);
    for (const [name, colour] of pairs) {
      const item = element("span", "", box);
      element("i", "", item).style.background = colour;
      item.append(name);
    }
  };
  part("Instructions", meta.legend);
  part("Critical path", meta.pathReasons.map((name, i) => [name, meta.reasonColours[i]]).filter((_, i) => trace.pathReason.includes(i)));
}
