"use strict";
// The plots of a run. Each says its numbers in words, too; the table below has them all.

const chartColours = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];

/* The value that a colour of the style sheet has now. */
function colour(name) {
  const probe = el("span", { hidden: true });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

const format = {
  fraction: (v) => String(Math.round(v * 1000) / 1000),
  usd: (v) => "$" + String(v >= 0.01 ? Math.round(v * 10000) / 10000 : Number(v.toPrecision(3))),
  count: (v) => v >= 1e6 ? Math.round(v / 1e4) / 100 + " M" : v >= 1e4 ? Math.round(v / 100) / 10 + " k" : String(Math.round(v)),
  ms: (v) => v >= 10000 ? Math.round(v / 100) / 10 + " s" : Math.round(v) + " ms",
};

function figure(parent, title, note, spoken) {
  const box = el("div", { role: "img", "aria-label": `${title}: ${spoken}` });
  parent.append(el("figure", { class: "chart" }, el("figcaption", null, title, " ", el("span", null, note)), box));
  return box;
}

const shortName = (s) => s.length > 26 ? s.slice(0, 12) + "…" + s.slice(-13) : s;

/* Horizontal bars, one a provider; with low and high they are points with whiskers. */
function bars(parent, run, title, note, unit, entries, scale) {
  if (!entries.some((e) => e.value !== null)) return null;
  const box = figure(parent, title, note, entries.map((e, i) => run.providers[i] + " " + (e.value === null ? "unknown" : unit(e.value) + (e.low === null || e.low === undefined ? "" : ` between ${unit(e.low)} and ${unit(e.high)}`))).join("; "));
  const names = run.providers.map(shortName);
  const widest = Math.max(...names.map((n) => n.length));
  const ink = colour("--text"), grid = colour("--line"), quiet = colour("--quiet");
  const font = `${12}px ${getComputedStyle(document.body).fontFamily}`;
  const most = Math.max(...entries.map((e) => e.value || 0)) || 1;
  const draw = (u) => {
    const c = u.ctx, unitOf = devicePixelRatio || 1;
    c.save();
    entries.forEach((e, i) => {
      if (e.value === null) return;
      const y = u.valToPos(i, "x", true), x = u.valToPos(e.value, "y", true), ground = u.valToPos(0, "y", true);
      c.fillStyle = c.strokeStyle = colour(chartColours[i % chartColours.length]);
      if (e.low === undefined) {
        c.fillRect(ground, y - 8 * unitOf, Math.max(x - ground, unitOf), 16 * unitOf);
      } else {
        c.lineWidth = 2 * unitOf;
        if (e.low !== null) {
          const from = u.valToPos(e.low, "y", true), to = u.valToPos(e.high, "y", true);
          c.beginPath();
          c.moveTo(from, y); c.lineTo(to, y);
          for (const end of [from, to]) { c.moveTo(end, y - 6 * unitOf); c.lineTo(end, y + 6 * unitOf); }
          c.stroke();
        }
        c.beginPath();
        c.arc(x, y, 5 * unitOf, 0, 2 * Math.PI);
        c.fill();
      }
      c.fillStyle = ink;
      c.font = `${12 * unitOf}px ${getComputedStyle(document.body).fontFamily}`;
      c.textBaseline = "middle";
      const label = unit(e.value);
      if (e.low !== undefined) {
        c.textAlign = "center";
        c.fillText(label, Math.min(Math.max(x, u.bbox.left + 16 * unitOf), u.bbox.left + u.bbox.width - 12 * unitOf), y - 14 * unitOf);
      } else {
        c.textAlign = "left";
        c.fillText(label, x + 6 * unitOf, y);
      }
    });
    c.restore();
  };
  return new uPlot({
    width: box.clientWidth, height: 50 + 40 * entries.length, legend: { show: false }, cursor: { show: false }, padding: [8, scale ? 14 : 70, 0, 0],
    scales: { x: { time: false, ori: 1, dir: -1, range: [-0.5, entries.length - 0.5] }, y: { ori: 0, dir: 1, range: scale || [0, most] } },
    axes: [
      { side: 3, font, stroke: ink, size: 14 + widest * 7, gap: 6, grid: { show: false }, ticks: { show: false }, splits: () => names.map((_, i) => i), values: () => names },
      { side: 2, font, stroke: quiet, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: 28, space: 70, values: (_, list) => list.map(unit) },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { draw: [draw] },
  }, [names.map((_, i) => i), entries.map((e) => e.value)], box);
}

/* Latency by percentile, a line a provider. */
function latency(parent, run, lists) {
  if (!lists.some(Boolean)) return null;
  const spoken = lists.map((list, i) => run.providers[i] + (list ? ` median ${format.ms(list[50])}, 95th percentile ${format.ms(list[95])}, largest ${format.ms(list[100])}` : " unknown")).join("; ");
  const box = figure(parent, "Latency", "by percentile of the results", spoken);
  const ink = colour("--text"), grid = colour("--line"), quiet = colour("--quiet");
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const shown = lists.map((list, i) => ({ list, i })).filter((s) => s.list);
  return new uPlot({
    width: box.clientWidth, height: 200, padding: [8, 22, 0, 0], cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false, range: [0, 100] }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
    axes: [
      { font, stroke: quiet, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: 28, values: (_, list) => list.map((v) => "p" + v) },
      { font, stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: 66, values: (_, list) => list.map(format.ms) },
    ],
    series: [{ label: "percentile", value: (_, v) => "p" + (v ?? 95) }, ...shown.map(({ list, i }) => ({
      label: run.providers[i], stroke: colour(chartColours[i % chartColours.length]), dash: dashes[i % dashes.length], width: 2, points: { show: false }, value: (_, v) => format.ms(v ?? list[95]),
    }))],
  }, [Array.from({ length: 101 }, (_, i) => i), ...shown.map((s) => s.list)], box);
}

const drawn = new Map(); // plots by run

/* Draws the plots of a run anew: at first, after a change of the colours or of the width. */
function drawCharts(run) {
  const parent = document.querySelector(`[data-charts="${run.id.slice(1)}"]`);
  if (!parent || !parent.offsetParent) return;
  (drawn.get(run) || []).forEach((plot) => plot.destroy());
  parent.replaceChildren();
  const c = run.charts;
  const values = (list) => list.map((value) => ({ value }));
  drawn.set(run, [
    bars(parent, run, "Pass rate", "with its interval of 95 %", format.fraction, c.pass_rate, [0, 1]),
    latency(parent, run, c.latency_ms),
    bars(parent, run, "Cost", "of the agent, in all", format.usd, values(c.cost_usd)),
    bars(parent, run, "Tokens", "in and out, in all", format.count, values(c.tokens)),
  ].filter(Boolean));
}
