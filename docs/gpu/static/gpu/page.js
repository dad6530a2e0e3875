// The page "Test your GPU": one button, three parts, and what was found.

import { Bench } from "./parts.js";
import { Programs } from "./programs.js";
import { drawChart, failures, line, percent, shares, slowdowns, verdict } from "./report.js";

const PARTS = [ // name in the report, label, and its part of the time
  ["right", "Right?", 0.35],
  ["fast", "Fast?", 0.25],
  ["chosen", "Well chosen?", 0.4],
];
const [FIRST_ESTIMATE_S, MAX_ADDRESS] = [60, 7500]; // servers refuse longer addresses
const LIMITS = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxComputeWorkgroupsPerDimension",
  "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupStorageSize", "minStorageBufferOffsetAlignment",
];
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render|warp/i;
const NO_WEBGPU =
  "This browser does not offer WebGPU to this page. Recent versions of Chrome, Edge, Firefox and Safari do on most " +
  "systems; the page must be loaded by https or from localhost.";
const NO_ADAPTER =
  "This browser has WebGPU, but offers no GPU to this page. Reload it. If no GPU is found then, restart the browser, which " +
  "stops offering one after some crashes; if it never found one, its settings or the driver disable WebGPU " +
  "(chrome://gpu and about:support say why).";
const HIDDEN = "The page was in the background while it measured: times are invalid. Run it again, and keep the page visible.";

const element = (id) => document.getElementById(id);

function say(message) {
  element("status").textContent = message;
  element("status").hidden = !message;
}

function made(name, text, attributes = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, attributes);
}

/** Fills a table with rows of a heading and cells. */
function fillTable(table, headings, rows) {
  const head = made("tr", "");
  head.append(...headings.map((text) => made("th", text, { scope: "col" })));
  const body = rows.map(([first, ...cells]) => {
    const row = made("tr", "");
    row.append(made("th", first, { scope: "row" }), ...cells.map((text) => made("td", text)));
    return row;
  });
  table.replaceChildren(head, ...body);
}

/** Names browser and system as far as the browser tells. */
async function hostOf() {
  const data = navigator.userAgentData;
  if (data) {
    const values = await data.getHighEntropyValues(["fullVersionList", "platformVersion", "architecture"]).catch(() => ({}));
    const brands = (values.fullVersionList ?? data.brands).filter(({ brand }) => !/not.?a.?brand/i.test(brand));
    const { brand, version } = brands.find(({ brand: each }) => each !== "Chromium") ?? brands[0] ?? { brand: "Chromium", version: "" };
    const system = [data.platform, values.platformVersion, values.architecture].filter(Boolean).join(" ");
    return { browser: `${brand} ${version}`.trim(), system: system || "an unknown system" };
  }
  const agent = navigator.userAgent;
  const [, system = "an unknown system"] = /\(([^)]*)\)/.exec(agent) ?? [];
  const [browser = "an unknown browser"] = /(Firefox|Version|Chrome)\/[\d.]+/.exec(agent) ?? [];
  return { browser: browser.replace("Version", "Safari").replace("/", " "), system };
}

function adapterOf(adapter) {
  const { vendor, architecture, device, description, isFallbackAdapter = false } = adapter.info;
  const name = [vendor, device || architecture].filter(Boolean).join(" ") || description || "a GPU without a name";
  const software = isFallbackAdapter || SOFTWARE.test([name, architecture, description].join(" "));
  return { name, vendor, architecture, device, description, software };
}

/** A run of all parts, and its report. */
class Run {
  constructor(programs, issues) {
    Object.assign(this, { programs, issues, done: 0, started: performance.now() });
  }

  async start() {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return say(navigator.gpu ? NO_ADAPTER : NO_WEBGPU);
    const requiredFeatures = ["timestamp-query"].filter((name) => adapter.features.has(name));
    const device = await adapter.requestDevice({ requiredFeatures });
    const { wgslice, commit, fingerprint } = this.programs.index;
    this.report = {
      format: "wgslice gpu", version: 1, by: "page", wgslice, commit, fingerprint,
      date: new Date().toISOString().replace(/\.\d+Z$/, "+00:00"),
      host: await hostOf(), adapter: adapterOf(adapter),
      limits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]])),
      features: [...adapter.features].sort(),
      timings_valid: true, clock: null, side: null, constants: null, kernels: [], races: [], speeds: [], choices: [],
      seconds: {}, failures: [], notes: [],
    };
    this.showAdapter();
    await this.runParts(device);
    device.destroy();
    this.show();
    this.address = await this.issue(); // now, since browsers block windows that open long after a click
  }

  async runParts(device) {
    let [part, share] = ["", 0];
    const bench = new Bench(device, this.programs, this.report, (fraction, label) => this.progress(fraction * share, `${part} ${label}`));
    device.addEventListener("uncapturederror", ({ error }) => {
      this.report.failures.push({ name: bench.running ?? "a command", failure: error.message });
    });
    const hide = () => {
      if (!document.hidden || part === PARTS[0][1] || !this.report.timings_valid) return;
      this.report.timings_valid = false;
      this.report.notes.push(HIDDEN);
    };
    document.addEventListener("visibilitychange", hide);
    try {
      for (const [name, label, weight] of PARTS) {
        [part, share] = [label, weight];
        const before = this.done;
        hide();
        const start = performance.now();
        await bench[name]();
        this.report.seconds[name] = Math.round((performance.now() - start) / 100) / 10;
        this.done = before + weight;
        this.show();
      }
    } catch (error) {
      this.report.failures.push({ name: bench.running ?? part, failure: error.message });
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
  }

  progress(fraction, label) {
    this.done += fraction;
    const spent = (performance.now() - this.started) / 1e3;
    const left = this.done > 0.03 ? (spent / this.done) * (1 - this.done) : FIRST_ESTIMATE_S;
    element("bar").value = this.done;
    element("doing").textContent = label;
    element("left").textContent = `about ${Math.max(1, Math.round(left))} s left`;
  }

  showAdapter() {
    const { adapter, host, limits } = this.report;
    const mebibytes = (name) => `${(limits[name] / 2 ** 20).toLocaleString("en")} MiB`;
    fillTable(element("adapter"), ["", "your GPU"], [
      ["adapter", adapter.name + (adapter.software ? " (software: it runs on the processor)" : "")],
      ["architecture", adapter.architecture || "not told"],
      ["description", adapter.description || "not told"],
      ["browser, system", `${host.browser}, ${host.system}`],
      ["largest buffer, binding", `${mebibytes("maxBufferSize")}, ${mebibytes("maxStorageBufferBindingSize")}`],
      ["timestamps", this.report.features.includes("timestamp-query") ? "yes" : "no"],
    ]);
    element("found").hidden = false;
  }

  /** Shows what has been found so far. */
  show() {
    const { report } = this;
    element("verdict").textContent = verdict(report);
    const wrong = failures(report);
    element("failures").replaceChildren(...wrong.map((text) => made("li", text)));
    element("failed").hidden = !wrong.length;
    element("found").dataset.red = wrong.length > 0;
    element("notes").replaceChildren(...report.notes.map((text) => made("p", text)));
    element("picture").hidden = !report.speeds.length;
    if (report.speeds.length) drawChart(element("chart"), report);
    fillTable(element("groups"), ["group", "copies", "mean", "least", "greatest"], shares(report).map(
      ({ group, count, mean, least, greatest }) => [group, `${count}`, percent(mean), percent(least), percent(greatest)]));
    const chosen = slowdowns(report);
    element("slowdown").textContent = chosen ? `Slowdown over best of ${chosen.count} copies: ${chosen.mean.toFixed(2)} on average, ` +
      `${chosen.worst.value.toFixed(2)} at worst (${chosen.worst.name}: ${chosen.worst.chosen}; the fastest is ${chosen.worst.best}).` : "";
    element("line").textContent = line(report);
    element("take").hidden = false;
  }

  get file() {
    const { adapter, host, date } = this.report;
    const words = `page ${adapter.name} ${host.browser.split(".")[0]} ${date.slice(0, 10)}`;
    return `${words.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.json`;
  }

  /** Returns the file's text; four digits say all that a timing does. */
  json(indent) {
    const round = (_, value) => typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
    return JSON.stringify(this.report, round, indent);
  }

  save() {
    const blob = new Blob([`${this.json(1)}\n`], { type: "application/json" });
    const link = made("a", "", { download: this.file, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
  }

  /** Returns the address of a new issue with the line and the file, compressed; without the file if that is too long. */
  async issue() {
    const stream = new Blob([this.json()]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const title = `GPU: ${this.report.adapter.name}, ${this.report.host.browser}`;
    const address = (body) => `${this.issues}?${new URLSearchParams({ title, body })}`;
    const text = btoa(String.fromCharCode(...bytes));
    const whole = address(`${line(this.report)}\n\n${this.file}, by base64 -d | gunzip:\n\`\`\`\n${text}\n\`\`\`\n`);
    this.isWhole = whole.length <= MAX_ADDRESS;
    return this.isWhole ? whole : address(`${line(this.report)}\n\nAttach ${this.file}, which the page has saved.\n`);
  }
}

async function main() {
  const programs = await Programs.fetched(new URL("programs/", import.meta.url));
  const { issues } = programs.index;
  const start = element("start");
  let run = null;
  start.addEventListener("click", async () => {
    start.disabled = true;
    element("running").hidden = false;
    say("");
    run = new Run(programs, issues);
    await run.start().catch((error) => say(`This page fails here: ${error.message}`));
    element("running").hidden = true;
    [start.disabled, start.textContent] = [false, "Test again"];
  });
  element("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(line(run.report)).then(
      () => { element("copied").textContent = "Copied."; },
      () => { element("copied").textContent = "The browser did not allow it: select the line and copy it."; });
  });
  element("save").addEventListener("click", () => run.save());
  element("issue").hidden = !issues;
  element("issue").addEventListener("click", () => {
    if (!run.isWhole) run.save();
    window.open(run.address, "_blank", "noopener");
  });
  const read = { report: () => run?.report, issue: () => run.address, file: () => run.file };
  globalThis.gpuPage = Object.defineProperties({}, Object.fromEntries(
    Object.entries(read).map(([name, get]) => [name, { get }]))); // for tests
  element("gpu").hidden = false;
  say(navigator.gpu ? "" : NO_WEBGPU);
  start.disabled = !navigator.gpu;
}

main().catch((error) => say(`This page fails here: ${error.message}`));
