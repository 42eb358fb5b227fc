"use strict";
// The grid of items and providers. Only the rows in view are in the document, however many there are.

const rowHeight = 36; // as in the style sheet

class Grid {
  constructor(run, section) {
    this.run = run;
    this.rows = [];
    this.at = { row: 0, column: 0 };
    this.count = el("p", { class: "count", role: "status" });
    this.heads = el("div", { class: "row heads", role: "row", "aria-rowindex": "1" });
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.box = el("div", { class: "grid", role: "grid", "aria-label": "Items by provider", "aria-readonly": "true" }, el("div", { role: "rowgroup" }, this.heads), this.body);
    this.none = el("p", { class: "empty", hidden: true }, "No item matches. ", el("button", { type: "button", onclick: () => this.clear() }, "Clear the filters"));
    section.append(this.filters(), this.count, this.box, this.none);
    this.box.addEventListener("scroll", () => this.schedule());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  filters() {
    const words = [...this.run.statuses, "disagree", "flaky", "worse", "better", "new violation", "violation"];
    const counts = new Map();
    for (const row of this.run.rows) for (const word of new Set(row.cells.flatMap((c) => [...c.marks]))) counts.set(word, (counts.get(word) || 0) + 1);
    this.search = el("input", { type: "search", placeholder: "item, tag, check, answer", "aria-label": "Search in items, tags, failed checks and the beginning of answers", "aria-keyshortcuts": "/", oninput: () => this.filter({ q: this.search.value }) });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.search.value) { event.preventDefault(); this.search.value = ""; this.filter({ q: null }); }
      else if (event.key === "Escape" || event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); this.focus(); }
    });
    const choice = (name, label, all, values) => {
      const select = el("select", { "aria-label": label, onchange: () => this.filter({ [name]: select.value }) }, el("option", { value: "" }, all), values.map(([value, text]) => el("option", { value }, text)));
      this[name + "Choice"] = select;
      return select;
    };
    this.chips = words.filter((w) => counts.has(w)).map((word) => el("button", { type: "button", "aria-pressed": "false", "data-word": word, onclick: () => this.toggle(word) }, `${word.replaceAll("_", " ")} ${counts.get(word)}`));
    const several = this.run.providers.length > 1;
    return el("div", { class: "filters", role: "search", "aria-label": "Filters" }, this.search,
      several ? choice("provider", "Provider", "all providers", this.run.providers.map((p) => [p, p])) : null,
      this.run.tags.length ? choice("tag", "Tag", "all tags", this.run.tags.map((t) => [t, "#" + t])) : null,
      choice("order", "Order", several ? "disagreements first" : "failures first", [["dataset", "as in the dataset"], ["slow", "slowest first"], ["dear", "dearest first"]]),
      el("fieldset", { class: "chips" }, el("legend", { class: "unseen" }, "Status"), this.chips));
  }

  toggle(word) {
    const chosen = new Set((address.get().status || "").split(",").filter(Boolean));
    if (!chosen.delete(word)) chosen.add(word);
    this.filter({ status: [...chosen].join(",") });
  }

  clear() { this.filter({ q: null, status: null, provider: null, tag: null }); }

  filter(changes) {
    address.set(changes, false);
    this.apply(address.get());
    this.box.scrollTop = 0;
    this.draw();
  }

  /* Takes the filters of the address. */
  apply(state) {
    const chosen = (state.status || "").split(",").filter(Boolean);
    const only = this.run.providers.indexOf(state.provider);
    const text = (state.q || "").toLowerCase();
    if (document.activeElement !== this.search) this.search.value = state.q || "";
    for (const name of ["provider", "tag", "order"]) if (this[name + "Choice"]) this[name + "Choice"].value = state[name] || "";
    this.chips.forEach((chip) => chip.setAttribute("aria-pressed", String(chosen.includes(chip.dataset.word))));
    this.columns = only < 0 ? this.run.providers.map((_, i) => i) : [only];
    this.rows = this.run.rows.filter((row) => {
      const cells = this.columns.map((c) => row.cells[c]).filter((c) => c.lines.length);
      return cells.length && (!text || row.words.includes(text)) && (!state.tag || (row.tags || []).includes(state.tag)) && (!chosen.length || cells.some((c) => chosen.some((word) => c.marks.has(word))));
    });
    this.sort(state.order);
    this.at.row = Math.min(this.at.row, Math.max(0, this.rows.length - 1));
    this.at.column = Math.min(this.at.column, this.columns.length);
    this.header();
    const lines = this.rows.length === 1 ? "1 item" : this.rows.length + " items";
    this.count.textContent = this.rows.length === this.run.rows.length ? lines : `${lines} of ${this.run.rows.length}`;
    this.none.hidden = this.rows.length > 0;
    this.box.hidden = this.rows.length === 0;
  }

  sort(order) {
    const sum = (row, key) => this.columns.reduce((all, c) => all + row.cells[c].lines.reduce((n, l) => n + (l[key] || 0), 0), 0);
    if (order === "slow" || order === "dear") {
      const key = order === "slow" ? "ms" : "usd";
      const by = new Map(this.rows.map((row) => [row, sum(row, key)]));
      this.rows.sort((a, b) => by.get(b) - by.get(a) || a.place - b.place);
    } else if (order !== "dataset") {
      const ranks = ["new violation", "worse", "violation", "fail", "flaky", "error", "stale", "unjudged", "not_run"];
      const rank = (row) => {
        const i = ranks.findIndex((word) => this.columns.some((c) => row.cells[c].marks.has(word)));
        return i < 0 ? ranks.length : i;
      };
      const by = new Map(this.rows.map((row) => [row, [this.columns.length > 1 ? row.spread : 0, rank(row)]]));
      this.rows.sort((a, b) => by.get(b)[0] - by.get(a)[0] || by.get(a)[1] - by.get(b)[1] || a.place - b.place);
    }
  }

  header() {
    const heads = ["item", ...this.columns.map((c) => this.run.providers[c])];
    this.heads.replaceChildren(...heads.map((name, i) => el("div", { role: "columnheader", "aria-colindex": i + 1, title: name }, name)));
    this.box.style.setProperty("--columns", `minmax(240px, 1.3fr) repeat(${this.columns.length}, minmax(190px, 1fr))`);
    this.box.style.setProperty("--least", 240 + 190 * this.columns.length + "px");
    this.box.setAttribute("aria-rowcount", this.rows.length + 1);
    this.box.setAttribute("aria-colcount", heads.length);
    this.body.style.height = this.rows.length * rowHeight + "px";
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  /* Puts the rows in view into the document, and the one with the cursor, which keeps the focus. With all, every row up to that many. */
  draw(all) {
    if (!this.rows || this.box.hidden) return;
    const focused = this.body.contains(document.activeElement);
    let first = Math.max(0, Math.floor(this.box.scrollTop / rowHeight) - 6);
    let last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / rowHeight) + 6);
    if (all) { first = 0; last = Math.min(this.rows.length, all); }
    const places = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    if (!all && this.rows.length && (this.at.row < first || this.at.row >= last)) places[this.at.row < first ? "unshift" : "push"](this.at.row);
    this.body.replaceChildren(...places.map((place) => this.row(place)));
    if (focused) this.focusCell();
  }

  row(place) {
    const row = this.rows[place];
    const e = el("div", { class: "row", role: "row", "aria-rowindex": place + 2, "data-place": place },
      this.cell(place, 0, { class: "name", role: "rowheader", title: row.id }, row.id, (row.tags || []).map((t) => el("span", { class: "tag" }, "#" + t)), row.quarantined ? el("span", { class: "tag" }, "quarantined") : null),
      this.columns.map((c, i) => this.cell(place, i + 1, { class: "cell", role: "gridcell", title: this.spoken(row.cells[c]) }, this.content(row.cells[c]))));
    e.style.transform = `translateY(${place * rowHeight}px)`;
    return e;
  }

  cell(place, column, attributes, ...children) {
    const here = this.at.row === place && this.at.column === column;
    return el("div", { ...attributes, "aria-colindex": column + 1, "data-column": column, tabindex: here ? "0" : "-1" }, ...children);
  }

  content(cell) {
    if (!cell.lines.length) return [el("span", { class: "quiet" }, "-")];
    const { statuses } = this.run;
    const worst = cell.lines.find((l) => statuses[l.status] !== "pass") || cell.lines[0];
    const status = statuses[worst.status];
    const same = cell.lines.filter((l) => l.status === worst.status).length;
    const nodes = [badge(status, status.replaceAll("_", " ") + (cell.lines.length > 1 ? ` ${same}/${cell.lines.length}` : ""))];
    for (const word of ["worse", "better", "new violation", "changed", "new"]) if (cell.marks.has(word)) nodes.push(el("span", { class: "mark tone " + (tones[word] || "none") }, word));
    if (cell.marks.has("violation") && status === "pass") nodes.push(el("span", { class: "mark tone open" }, "violation"));
    nodes.push(el("span", { class: "why" }, worst.why || (worst.ms === null ? "" : worst.ms + " ms")));
    return nodes;
  }

  spoken(cell) {
    return cell.lines.map((l) => this.run.statuses[l.status].replaceAll("_", " ") + (l.why ? ": " + l.why : "")).join("; ");
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / rowHeight) - 2);
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0] };
    if (event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.open(); return; }
    if (event.key === "Home") this.at = event.ctrlKey ? { row: 0, column: 0 } : { row: this.at.row, column: 0 };
    else if (event.key === "End") this.at = event.ctrlKey ? { row: this.rows.length - 1, column: this.columns.length } : { row: this.at.row, column: this.columns.length };
    else if (moves[event.key] && !event.ctrlKey) {
      const [down, right] = moves[event.key];
      this.at = { row: Math.min(Math.max(0, this.at.row + down), this.rows.length - 1), column: Math.min(Math.max(0, this.at.column + right), this.columns.length) };
    } else return;
    event.preventDefault();
    this.focus();
  }

  /* Brings the cursor into view and the focus to it. */
  focus() {
    if (!this.rows.length) return;
    const top = this.at.row * rowHeight, head = this.heads.offsetHeight, view = this.box.clientHeight - head;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + rowHeight > this.box.scrollTop + view) this.box.scrollTop = top + rowHeight - view;
    this.draw();
    this.focusCell();
  }

  focusCell() {
    const cell = this.body.querySelector(`[data-place="${this.at.row}"] [data-column="${this.at.column}"]`);
    if (cell) cell.focus({ preventScroll: true });
  }

  click(event) {
    const cell = event.target.closest("[data-column]");
    if (!cell) return;
    this.at = { row: Number(cell.parentElement.dataset.place), column: Number(cell.dataset.column) };
    this.draw();
    this.open();
  }

  open() {
    const row = this.rows[this.at.row];
    if (!row) return;
    const column = this.at.column > 0 ? this.columns[this.at.column - 1] : this.columns.find((c) => row.cells[c].lines.some((l) => this.run.statuses[l.status] !== "pass")) ?? this.columns[0];
    address.set({ item: row.id, of: this.run.providers[column], repeat: null, with: null }, true);
    showItem(this.run, address.get());
  }

  neighbour(row, by) {
    const place = this.rows.indexOf(row) + by;
    if (place < 0 || place >= this.rows.length) return null;
    this.at.row = place;
    return this.rows[place];
  }
}
