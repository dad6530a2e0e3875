// The results as the visitor sees and takes them: a line, a verdict, a chart.

export const GROUPS = ["slices", "permutes", "windows", "gathers", "masks"];

const geometricMean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
const inGroup = (report, group) => report.speeds.filter((each) => each.group === group);
const gigabytes = (report, group) => inGroup(report, group).map(({ nbytes, best_s }) => nbytes / best_s / 1e9)[0];
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Mean share of the buffer copy's speed, and the least and the greatest, by group. */
export function shares(report) {
  const found = [["kernel copy", inGroup(report, "kernel copy")], ...GROUPS.map((group) => [group, inGroup(report, group)])];
  return found.filter(([, some]) => some.length).map(([group, some]) => {
    const values = some.map(({ share }) => share);
    return { group, count: some.length, mean: geometricMean(values), least: Math.min(...values), greatest: Math.max(...values) };
  });
}

/** Slowdown over best of the strategies that the shipped cost model takes: mean, worst, and the worst copy. */
export function slowdowns(report) {
  const found = report.choices.map(({ name, ways_s, shipped }) => {
    const [best] = Object.entries(ways_s).sort(([, a], [, b]) => a - b);
    return { name, chosen: shipped.chosen, best: best[0], value: ways_s[shipped.chosen] / best[1] };
  });
  if (!found.length) return null;
  const worst = found.reduce((a, b) => (b.value > a.value ? b : a));
  return { count: found.length, mean: geometricMean(found.map(({ value }) => value)), worst };
}

/** Lines of kernels and races that wrote wrong bytes, and other failures. */
export function failures(report) {
  const wrong = [...report.kernels, ...report.races].filter((each) => each.wrong);
  const described = wrong.map(({ kernel, trials, wrong: count, failure }) => `${kernel}: wrong in ${count} of ${trials} runs; ${failure}`);
  return [...described, ...report.failures.map(({ name, failure }) => `${name}: ${failure}`)];
}

/** The verdict in two sentences. */
export function verdict(report) {
  const found = failures(report);
  const runs = [...report.kernels, ...report.races].reduce((sum, { trials }) => sum + trials, 0);
  const right = found.length
    ? `${plural(found.length, "failure")} on this GPU, listed below: please report ${found.length === 1 ? "it" : "them"}.`
    : `All ${report.kernels.length} kernels write NumPy's bytes on this GPU, in ${runs.toLocaleString("en")} runs.`;
  const copy = gigabytes(report, "buffer copy");
  if (!copy) return `${right} No speed was measured.`;
  const parts = shares(report).map(({ group, mean }) => `${group} ${percent(mean)}`);
  const chosen = slowdowns(report);
  const cost = chosen ? `; on average, the chosen strategy takes ${chosen.mean.toFixed(2)} times as long as the fastest` : "";
  const invalid = report.timings_valid ? "" : " (invalid: the page was in the background)";
  return `${right} A buffer copy writes ${copy.toPrecision(3)} GB/s${invalid}; of that speed, ${parts.join(", ")}${cost}.`;
}

export const percent = (share) => `${Number((100 * share).toPrecision(2))}%`;

/** The results in a line to paste, in the order of that of `python3 run gpu`. */
export function line(report) {
  const { adapter, host } = report;
  const code = `wgslice ${report.wgslice} at ${(report.commit || "an unknown commit").slice(0, 12)}`;
  const parts = [`${adapter.name} (${host.browser}, ${host.system}), ${code}`];
  const found = failures(report);
  parts.push(found.length ? `failures: ${found.join(" / ").slice(0, 500)}` : `kernels: all ${report.kernels.length} correct`);
  const copy = gigabytes(report, "buffer copy");
  if (copy) {
    parts.push(`copy of ${(report.side / 512) ** 2} MiB: ${copy.toPrecision(3)} GB/s by buffer copy`);
    parts.push(`of that: ${shares(report).map(({ group, mean }) => `${group} ${Number(mean.toPrecision(2))}`).join(", ")}`);
  }
  const chosen = slowdowns(report);
  if (chosen) parts.push(`slowdown over best: ${chosen.mean.toFixed(2)}, worst ${chosen.worst.value.toFixed(2)} (${chosen.worst.name})`);
  if (!report.timings_valid) parts.push("times are invalid: the page was in the background");
  return parts.join("; ");
}

/** Draws a bar for each group: the mean share of the buffer copy's speed, with a line from least to greatest. */
export function drawChart(figure, report) {
  const found = shares(report);
  const [row, left, width] = [30, 140, 420];
  const most = Math.max(1, ...found.map(({ greatest }) => greatest));
  const x = (share) => left + (share / most) * width;
  const element = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const height = row * found.length + 24;
  const labels = found.map(({ group, mean }) => `${group} ${percent(mean)}`).join(", ");
  const svg = element("svg", { viewBox: `0 0 ${left + width + 60} ${height}`, role: "img", "aria-label": `Share of the speed of a buffer copy: ${labels}` });
  found.forEach(({ group, mean, least, greatest }, number) => {
    const y = row * number + 4;
    svg.append(element("text", { x: left - 8, y: y + 15, class: "label" }, group));
    svg.append(element("rect", { x: left, y, width: x(mean) - left, height: 20, class: "bar" }));
    if (greatest > least) svg.append(element("path", { d: `M${x(least)} ${y + 10}H${x(greatest)}`, class: "range" }));
    svg.append(element("text", { x: Math.max(x(mean), x(greatest)) + 6, y: y + 15 }, percent(mean)));
  });
  svg.append(element("path", { d: `M${x(1)} 0V${row * found.length}`, class: "whole" }));
  svg.append(element("text", { x: x(1), y: height - 8, class: "middle" }, "buffer copy"));
  figure.replaceChildren(svg);
}
