// The trace: typed arrays, one entry an instruction, ordered by lane and start.

const TYPES = { u1: Uint8Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };

async function readColumns(meta) {
  const text = atob(document.getElementById("columns").textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(plain).arrayBuffer();
  const columns = {};
  for (const [name, type, offset, length] of meta.columns) {
    columns[name] = new TYPES[type](buffer, offset, length);
  }
  return columns;
}

// First place in [low, high) of a sorted array whose value is not below the given one.
function lowerBound(values, value, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Rows of a lane that lie in [from, to): a start-up may run beside the copy before it, so one looks back a little.
function rowsBetween(trace, lane, from, to) {
  const first = trace.meta.lanes[lane].first, last = trace.meta.lanes[lane].last;
  let low = lowerBound(trace.start, from, first, last);
  for (let back = 0; back < 4 && low > first; back++) {
    low--;
    if (trace.end[low] <= from) { low++; break; }
  }
  return [low, lowerBound(trace.start, to, low, last)];
}

// For each row the rows that it caused to start: places in one array, `from[row]` to `from[row + 1]`.
function followers(cause) {
  const from = new Int32Array(cause.length + 1), rows = new Int32Array(cause.length);
  for (const other of cause) if (other >= 0) from[other + 1]++;
  for (let i = 0; i < cause.length; i++) from[i + 1] += from[i];
  const next = from.slice();
  for (let row = 0; row < cause.length; row++) if (cause[row] >= 0) rows[next[cause[row]]++] = row;
  return { from, rows };
}

// The rows that a row goes back to, each by what set its start, the nearest first.
function backward(trace, row, most) {
  const found = [];
  for (let other = trace.cause[row]; other >= 0 && found.length < most; other = trace.cause[other]) found.push(other);
  return found;
}

// What a row delayed: of the rows that started because of it, always the one that ended last.
function forward(trace, row, most) {
  const found = [];
  for (let other = latest(trace, row); other >= 0 && found.length < most; other = latest(trace, other)) found.push(other);
  return found;
}

function delayed(trace, row) {
  return Array.from(trace.after.rows.subarray(trace.after.from[row], trace.after.from[row + 1]));
}

function latest(trace, row) {
  let best = -1;
  for (const other of delayed(trace, row)) {
    const better = best < 0 || trace.onPath[other] > trace.onPath[best]
      || (trace.onPath[other] === trace.onPath[best] && trace.end[other] > trace.end[best]);
    if (better) best = other;
  }
  return best;
}
