"use strict";
// The difference of two lists, and of two texts word by word.

const mostCompared = 1500; // words or lines on either side; beyond that the parts in the middle count as replaced

/* Steps [kind, value] with kind "same", "del" or "ins": a longest common subsequence. */
function diffList(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  const steps = a.slice(0, start).map((v) => ["same", v]);
  if (x.length > mostCompared || y.length > mostCompared) {
    steps.push(...x.map((v) => ["del", v]), ...y.map((v) => ["ins", v]));
  } else {
    steps.push(...middle(x, y));
  }
  steps.push(...a.slice(a.length - end).map((v) => ["same", v]));
  return steps;
}

function middle(x, y) {
  const width = y.length + 1;
  const length = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      length[i * width + j] = x[i] === y[j] ? length[(i + 1) * width + j + 1] + 1 : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  const steps = [];
  let i = 0, j = 0;
  while (i < x.length && j < y.length) {
    if (x[i] === y[j]) { steps.push(["same", x[i]]); i++; j++; }
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) steps.push(["del", x[i++]]);
    else steps.push(["ins", y[j++]]);
  }
  while (i < x.length) steps.push(["del", x[i++]]);
  while (j < y.length) steps.push(["ins", y[j++]]);
  return steps;
}

/* One side of a difference as nodes: "del" for the left one, "ins" for the right one. */
function sideOf(steps, kind, separator) {
  const nodes = [];
  for (const [step, value] of steps) {
    if (step !== "same" && step !== kind) continue;
    if (nodes.length && separator) nodes.push(separator);
    nodes.push(step === "same" ? value : el(kind, null, value));
  }
  return nodes;
}

const words = (text) => text.match(/\s+|[^\s]+/g) || [];
