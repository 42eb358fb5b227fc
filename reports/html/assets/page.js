"use strict";
// Puts the page together: which run is shown, keys, colours, print.

let grid = null; // of the run that is shown
const grids = new Map();
const help = document.getElementById("help");

/* Shows what the address says. */
async function show() {
  const state = address.get();
  const run = runs.find((r) => r.name === state.run) || runs[0];
  for (const section of document.querySelectorAll(".run")) section.hidden = "r" + section.dataset.run !== run.id;
  for (const link of document.querySelectorAll("[data-run-link]")) {
    if ("r" + link.dataset.runLink === run.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  await run.load();
  if (!grids.has(run)) grids.set(run, new Grid(run, document.querySelector(`[data-results="${run.id.slice(1)}"]`)));
  grid = grids.get(run);
  grid.apply(state);
  grid.draw();
  if (!drawn.has(run)) drawCharts(run);
  await showItem(run, state);
  document.documentElement.dataset.ready = "true";
}

const themes = ["auto", "light", "dark"];

function paint(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = "Colours: " + theme;
  button.setAttribute("aria-label", theme === "auto" ? "Colours: as the system has them" : "Colours: " + theme);
  redraw();
}

function redraw() { if (grid) drawCharts(grid.run); }

document.getElementById("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || "auto";
  paint(themes[(themes.indexOf(now) + 1) % themes.length]);
});
document.getElementById("help-open").addEventListener("click", () => help.showModal());
document.getElementById("help-close").addEventListener("click", () => help.close());
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); grid?.focus(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) { width = innerWidth; redraw(); }
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "?" && !typing && !help.open) { event.preventDefault(); help.showModal(); }
  if (event.key === "/" && !typing && !document.querySelector("dialog[open]") && grid) { event.preventDefault(); grid.search.focus(); grid.search.select(); }
});

// On paper there is no scrolling: as many rows as a printer should get are there, and the plots have their light colours.
const mostPrinted = 500;
addEventListener("beforeprint", () => {
  if (!grid) return;
  document.documentElement.dataset.theme = "light";
  redraw();
  grid.draw(mostPrinted);
  if (grid.rows.length > mostPrinted) grid.count.textContent += `; the first ${mostPrinted} are printed`;
});
addEventListener("afterprint", () => {
  paint(document.getElementById("theme").textContent.replace("Colours: ", ""));
  if (grid) { grid.apply(address.get()); grid.draw(); }
});

/* What cannot be opened says so where the reader looks. */
function refuse(error) {
  document.querySelector("main").prepend(el("p", { class: "note", role: "alert" }, `The data of this page cannot be opened (${error.message}). Browsers since 2023 can.`));
}

addEventListener("hashchange", () => show().catch(refuse));

for (const element of document.querySelectorAll(".run-data")) runs.push(new Run(element));
show().catch(refuse);
