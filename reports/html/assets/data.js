"use strict";
// Reading what the page holds. Text of models, tools and datasets only ever becomes text nodes and attributes, never markup.

/* A new element: el("p", {class: "quiet"}, "text", child, ...). Null and undefined are left out. */
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) e.append(child);
  }
  return e;
}

/* The array in a block: base64 of deflated JSON. */
async function readBlock(id) {
  const element = document.getElementById(id);
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

/* A run of the page, with its rows once they are read. */
class Run {
  constructor(element) {
    Object.assign(this, JSON.parse(element.textContent));
    this.id = element.id;
    this.opened = new Map(); // blocks that were opened last
    this.rows = null;
  }

  async load() {
    if (this.rows) return;
    const parts = await Promise.all(Array.from({ length: this.index }, (_, i) => readBlock(this.id + "i" + i)));
    const rows = parts.flat();
    rows.forEach((row, place) => this.complete(row, place));
    this.tags = [...new Set(rows.flatMap((row) => row.tags || []))].sort();
    this.rows = rows;
  }

  /* Adds to a row what the grid sorts and filters by. */
  complete(row, place) {
    row.place = place;
    const shares = [];
    for (const cell of row.cells) {
      const passed = cell.lines.filter((l) => this.statuses[l.status] === "pass").length;
      const failed = cell.lines.filter((l) => this.statuses[l.status] === "fail").length;
      cell.marks = new Set(cell.lines.map((l) => this.statuses[l.status]));
      if (passed && failed) cell.marks.add("flaky");
      if (cell.move) cell.marks.add(cell.move);
      if (cell.new_violations) cell.marks.add("new violation");
      if (cell.lines.some((l) => l.violations)) cell.marks.add("violation");
      if (passed + failed) shares.push(passed / (passed + failed));
    }
    row.spread = shares.length > 1 ? Math.max(...shares) - Math.min(...shares) : 0;
    if (row.spread > 0) row.cells.forEach((cell) => { if (cell.lines.length) cell.marks.add("disagree"); });
    row.words = [row.id, row.group || "", ...(row.tags || []),
      ...row.cells.flatMap((cell) => cell.lines.flatMap((l) => [l.why || "", l.answer || ""]))].join("\n").toLowerCase();
  }

  /* The details of a line, or null where they were left out of the page. */
  async detail(line) {
    if (line.block < 0) return null;
    let block = this.opened.get(line.block);
    if (!block) {
      block = await readBlock(this.id + "d" + line.block);
      if (this.opened.size >= 8) this.opened.delete(this.opened.keys().next().value);
      this.opened.set(line.block, block);
    }
    return block[line.at];
  }

  /* The command that shows an item whole. Outside single quotes stands nothing but the quote itself. */
  command(item, provider) {
    const quote = (s) => /^[A-Za-z0-9_./:@%+=,-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'";
    return `${this.show} ${quote(item)}${provider ? " --provider " + quote(provider) : ""} --all`;
  }
}

const runs = [];

/* The state of the page is its address: #run=..&status=fail,worse&provider=..&tag=..&q=..&order=dataset&item=..&of=..&repeat=..&with=.. */
const address = {
  get() { return Object.fromEntries(new URLSearchParams(location.hash.slice(1))); },
  /* Changes some keys; "" and null take one away. push adds a step to the history. */
  set(changes, push) {
    const next = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === "") next.delete(key);
      else next.set(key, value);
    }
    const hash = "#" + next.toString();
    if (hash === location.hash || hash === "#" && location.hash === "") return;
    if (push) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  },
};

const tones = { pass: "good", fail: "bad", worse: "bad", "new violation": "bad", violation: "bad", better: "good", not_run: "none", skipped: "none" };

function badge(word, text) {
  return el("span", { class: "tone " + (tones[word] || "open") }, text || word.replaceAll("_", " "));
}

/* Says something to those who listen. */
function say(text) { document.getElementById("status").textContent = text; }
