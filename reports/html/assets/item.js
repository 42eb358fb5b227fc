"use strict";
// An item that is open: checks, evidence, transcript, and the difference to the baseline or to another result.

const itemDialog = document.getElementById("item");
let shownItem = null; // {run, row, column, place, against}

/* All results of a row: [{column, place, line, name}]. */
function resultsOf(run, row) {
  return row.cells.flatMap((cell, column) => cell.lines.map((line, place) => ({
    column, place, line, key: column + "." + line.repeat, name: run.providers[column] + (run.repeat > 1 || line.repeat > 1 ? ", repeat " + line.repeat : ""),
  })));
}

/* Opens the item that the address names, or closes what is open. */
async function showItem(run, state) {
  const row = state.item === undefined ? null : run.rows.find((r) => r.id === state.item);
  if (!row) {
    if (state.item !== undefined) say(`The run has no item ${state.item}.`);
    shownItem = null;
    if (itemDialog.open) itemDialog.close();
    return;
  }
  const all = resultsOf(run, row);
  const one = all.find((r) => run.providers[r.column] === state.of && String(r.line.repeat) === (state.repeat || "1")) || all.find((r) => run.providers[r.column] === state.of) || all[0];
  if (!one) return;
  const other = state.with === "baseline" ? "baseline" : all.find((r) => r.key === state.with && r !== one) || null;
  const ticket = shownItem = { run, row, one, other };
  const [detail, otherDetail] = await Promise.all([run.detail(one.line), other && other !== "baseline" ? run.detail(other.line) : null]);
  if (shownItem !== ticket) return; // another item was opened meanwhile
  const hasBaseline = Boolean(detail && detail.before);
  const focused = itemDialog.contains(document.activeElement) && document.activeElement.dataset.key;
  itemDialog.replaceChildren(
    el("div", { class: "item-head" },
      el("div", { class: "bar" },
        el("h2", { id: "item-title", tabindex: "-1" }, row.id),
        el("button", { type: "button", "data-key": "previous", "aria-keyshortcuts": "p", onclick: () => step(-1) }, "Previous"),
        el("button", { type: "button", "data-key": "next", "aria-keyshortcuts": "n", onclick: () => step(1) }, "Next"),
        el("button", { type: "button", "data-key": "close", onclick: closeItem }, "Close")),
      el("p", { class: "facts" }, [row.group && "group " + row.group, ...(row.tags || []).map((t) => "#" + t), row.quarantined && "quarantined"].filter(Boolean).map((t) => el("span", null, t))),
      el("div", { class: "choices", role: "group", "aria-label": "Result" }, all.map((r) => el("button", {
        type: "button", "data-key": "of" + r.key, "aria-pressed": String(r === one), onclick: () => openResult(r, null),
      }, r.name, badge(run.statuses[r.line.status])))),
      all.length > 1 || hasBaseline ? el("div", { class: "choices", role: "group", "aria-label": "Compare with" }, el("span", { class: "quiet" }, "compare with"),
        [["", "nothing"], ...(hasBaseline ? [["baseline", "the baseline"]] : []), ...all.filter((r) => r !== one).map((r) => [r.key, r.name])].map(([key, name]) => el("button", {
          type: "button", "data-key": "with" + key, "aria-pressed": String(key === (other === "baseline" ? "baseline" : other ? other.key : "")), onclick: () => openResult(one, key),
        }, name))) : null),
    el("div", { class: "item-body", tabindex: "0", role: "region", "aria-label": "Result" }, itemBody(run, row, one, detail, other, otherDetail)));
  if (!itemDialog.open) itemDialog.showModal();
  const again = focused && [...itemDialog.querySelectorAll("[data-key]")].find((b) => b.dataset.key === focused);
  (again || itemDialog.querySelector("h2")).focus();
}

function openResult(result, against) {
  address.set({ of: shownItem.run.providers[result.column], repeat: result.line.repeat === 1 ? null : String(result.line.repeat), with: against }, false);
  showItem(shownItem.run, address.get());
}

function closeItem() {
  address.set({ item: null, of: null, repeat: null, with: null }, false);
  itemDialog.close();
}

/* Goes on to the next item that the filters let through. */
function step(by) {
  const next = grid.neighbour(shownItem.row, by);
  if (!next) return;
  address.set({ item: next.id, repeat: null, with: null }, false);
  showItem(shownItem.run, address.get());
}

itemDialog.addEventListener("close", () => {
  shownItem = null;
  address.set({ item: null, of: null, repeat: null, with: null }, false);
  if (grid) grid.focus();
});
itemDialog.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !shownItem) return;
  if (event.key === "n" || event.key === "p") {
    event.preventDefault();
    step(event.key === "n" ? 1 : -1);
  }
});

function itemBody(run, row, one, detail, other, otherDetail) {
  const side = (r, d) => el("section", { class: "side", "aria-label": r.name }, other && other !== "baseline" ? el("h3", null, r.name) : null, d ? resultOf(run, row, r, d) : leftOut(run, row, r));
  if (!other) return [el("div", { class: "sides" }, side(one, detail))];
  if (other === "baseline") {
    if (!detail || !detail.before) return [el("p", { class: "note" }, "The baseline has no such item."), el("div", { class: "sides" }, side(one, detail))];
    return [difference("baseline", fromBaseline(detail.before), "now", fromDetail(detail, true), detail.before.other ? "The item is asked or judged otherwise than in the baseline, so that the two do not compare." : null),
      el("div", { class: "sides" }, side(one, detail))];
  }
  return [detail && otherDetail ? difference(other.name, fromDetail(otherDetail), one.name, fromDetail(detail), null) : null,
    el("div", { class: "sides two" }, side(other, otherDetail), side(one, detail))];
}

function leftOut(run, row, r) {
  return el("p", { class: "note" }, "The details were left out of this page, which is bounded in size. See them with ", el("code", null, run.command(row.id, run.providers[r.column])), ".");
}

/* What two results are compared by. */
const sides = ["verdict", "failed checks", "violations", "calls", "answer", "cost", "latency"];

function fromBaseline(b) {
  return { verdict: "passed " + b.passed, "failed checks": b.failed, violations: b.violations, calls: b.calls, answer: b.answer, cost: b.cost, latency: b.latency };
}

/* short cuts the answer as the baseline does, so that the cut is no difference. */
function fromDetail(d, short) {
  const fact = (name) => (d.facts.find(([key]) => key === name) || [null, "unknown"])[1];
  let answer = d.answer === null ? null : d.answer.text;
  if (short && answer !== null) answer = [...answer].slice(0, 1000).join("");
  return {
    verdict: d.status.replaceAll("_", " ") + (d.cause ? ": " + d.cause : ""), "failed checks": d.checks.filter((c) => c.status === "fail").map((c) => c.name),
    violations: (d.violations || []).filter((v) => v.severity === "error").map((v) => v.name), calls: d.calls, answer, cost: fact("cost"), latency: fact("latency"),
  };
}

function difference(leftName, left, rightName, right, note) {
  const shown = (v) => v === null || v === undefined ? "not known" : Array.isArray(v) ? v.length ? v : ["none"] : v;
  const rows = sides.map((name) => {
    const a = shown(left[name]), b = shown(right[name]);
    let cells = [a, b];
    if (Array.isArray(a) && Array.isArray(b)) {
      const steps = diffList(a, b);
      cells = [sideOf(steps, "del", ", "), sideOf(steps, "ins", ", ")];
    } else if (name === "answer" && left.answer !== null && right.answer !== null) {
      const steps = diffList(words(a), words(b));
      cells = [sideOf(steps, "del"), sideOf(steps, "ins")];
    }
    return el("tr", { class: String(a) === String(b) ? "same" : null }, el("th", { scope: "row" }, name), el("td", null, cells[0]), el("td", null, cells[1]));
  });
  return el("section", { class: "card" }, el("h3", null, "Difference"), note ? el("p", { class: "note" }, note) : null,
    el("div", { class: "wide" }, el("table", { class: "diff" },
      el("thead", null, el("tr", null, el("th", { scope: "col" }, ""), el("th", { scope: "col" }, leftName), el("th", { scope: "col" }, rightName))),
      el("tbody", null, rows))));
}

/* One result, whole. */
function resultOf(run, row, r, d) {
  const proofs = new Set((d.violations || []).flatMap((v) => v.events));
  return [
    el("p", { class: "outcome" }, badge(d.status), d.cause ? " " + d.cause : "", d.score === null ? "" : ", score " + d.score, d.stop && d.stop !== "end" ? ", stopped: " + d.stop : "", d.quarantined ? ", quarantined" : ""),
    d.error ? el("div", { class: "block warning" }, el("h4", null, d.error[0]), el("pre", null, d.error[1]), d.error[2] ? el("p", { class: "hint" }, "Next: ", el("code", null, d.error[2])) : null) : null,
    d.checks.length ? [el("h3", null, "Checks"), checkOrder.flatMap((status) => d.checks.filter((c) => c.status === status)).map(checkOf)] : null,
    invariantsOf(d),
    el("h3", null, "Transcript"),
    transcriptOf(run, row, r, d, proofs),
    d.cassette ? cassetteOf(d.cassette) : null,
    el("h3", null, "Numbers"),
    el("dl", { class: "values" }, [...d.facts, ["again", d.replay]].map(([name, value]) => [el("dt", null, name), el("dd", null, name === "again" ? el("code", null, value) : value)])),
  ];
}

const checkOrder = ["fail", "unjudged", "pass"];

function checkOf(c) {
  return el("div", { class: "block" },
    el("header", null, badge(c.status), el("h4", null, c.name), el("span", { class: "quiet" }, [c.turn ? "turn " + c.turn : "", c.score ? "score " + c.score : "", c.notes || ""].filter(Boolean).join(", "))),
    el("dl", { class: "values" },
      c.reason ? [el("dt", null, "reason"), el("dd", null, c.reason)] : null,
      c.expected === undefined ? null : [el("dt", null, "expected"), el("dd", null, el("pre", null, c.expected))],
      c.actual === undefined ? null : [el("dt", null, "actual"), el("dd", null, el("pre", null, c.actual))],
      c.at ? [el("dt", null, "at"), el("dd", null, el("code", null, c.at))] : null));
}

function invariantsOf(d) {
  const list = d.violations || [];
  if (!d.held && !list.length && !d.not_applicable) return null;
  return [el("h3", null, "Invariants"),
    list.map((v) => el("div", { class: "block" },
      el("header", null, badge(v.severity === "error" ? "violation" : "warn", "violated (" + v.severity + ")"), el("h4", null, v.name)),
      el("p", null, v.evidence),
      el("p", { class: "quiet" }, "events ", v.events.map((n, i) => [i ? ", " : "", el("button", { type: "button", onclick: () => toEvent(n) }, "#" + n)]), v.at ? [" by ", el("code", null, v.at)] : null))),
    el("p", { class: "quiet" }, `${d.held} held`, d.not_applicable ? "; not applicable: " + d.not_applicable.join(", ") : "", d.triggered ? "; triggered: " + d.triggered.join(", ") : "")];
}

function toEvent(n) {
  const target = itemDialog.querySelector(`[data-event="${n}"]`);
  if (!target) { say(`Event ${n} is not shown.`); return; }
  target.scrollIntoView({ block: "center" });
  target.focus();
}

function cassetteOf(c) {
  return [el("h3", null, "Cassette"), el("p", null, badge(c.state === "fresh" || c.state === "recorded" ? "pass" : "stale", c.state), " ", el("code", null, c.file), c.left_over ? `; ${c.left_over} recorded interactions left over` : ""),
    (c.drift || []).map((d) => el("div", { class: "block" }, el("h4", null, d.title), el("dl", { class: "values" }, el("dt", null, "recorded"), el("dd", null, el("pre", null, d.old)), el("dt", null, "now"), el("dd", null, el("pre", null, d.new)))))];
}

const leftWords = {
  none: "The run kept no trace of this result.",
  bound: "The transcript was left out of this page, which is bounded in size.",
  cut: "The rest of the transcript was left out of this page.",
};

function transcriptOf(run, row, r, d, proofs) {
  const command = el("code", null, run.command(row.id, run.providers[r.column]));
  const nodes = (d.events || []).map((e) => eventOf(e, proofs));
  if (!nodes.length && d.answer) nodes.push(el("div", { class: "block assistant" }, el("h4", null, "answer"), textOf(d.answer)));
  if (d.left) nodes.push(el("p", { class: "note" }, leftWords[d.left], d.left === "none" ? "" : [" See it with ", command, "."]));
  return nodes;
}

function eventOf(e, proofs) {
  return el("article", { class: "block " + e.role + (proofs.has(e.n) ? " proof" : ""), "data-event": e.n, tabindex: "-1", "aria-label": `event ${e.n}, ${e.role}${proofs.has(e.n) ? ", evidence of a violation" : ""}` },
    el("header", null, el("h4", null, `#${e.n} ${e.role}`), e.note ? el("span", { class: "quiet" }, e.note) : null),
    e.role === "system" ? el("details", null, el("summary", { class: "quiet" }, "what the agent was told"), e.parts.map((p) => partOf(p, proofs))) : (e.parts || []).map((p) => partOf(p, proofs)));
}

function partOf(p, proofs) {
  switch (p.kind) {
    case "call":
    case "asked":
      return el("div", { class: "call" + (p.ran && proofs.has(p.ran.n) ? " proof" : "") },
        el("div", null, el("b", null, "call "), el("code", null, p.name), textOf(p)),
        p.ran ? el("div", { "data-event": p.ran.n, tabindex: "-1" }, badge(p.ran.error ? "fail" : "pass", "#" + p.ran.n + " " + p.ran.outcome + (p.ran.error ? ", error" : "")), " ", el("span", { class: "quiet" }, p.ran.note), textOf(p.ran))
          : p.kind === "call" ? el("div", null, badge("fail", "no result")) : null);
    case "reasoning":
      return el("details", null, el("summary", { class: "quiet" }, "reasoning"), textOf(p));
    case "result":
      return el("div", { class: "call" }, el("div", null, el("b", null, "result"), textOf(p)));
    case "media":
      return el("p", { class: "quiet" }, "[" + p.text + "]");
  }
  return textOf(p);
}

function textOf(t) {
  return [t.text === "" ? el("p", { class: "quiet" }, "(empty)") : el("pre", null, t.text), t.more ? el("p", { class: "quiet" }, `${t.more} more bytes are in the trace`) : null];
}
