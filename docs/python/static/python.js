// The page that runs Python in the browser: an editor, and a picture that a line of Python slices.
const at = (name) => document.getElementById(name);
const FOLDER = new URL("python/", import.meta.url);
const [WIDTH, HEIGHT] = [320, 240];
const PAGE = `
import ast, sys, traceback
import numpy as np
import wgslice as wg
from pyodide.code import eval_code_async
from wgslice.gpu.sink import Sink

plans, names, record = [], {}, Sink.record

def remembered(self, encoder, bound, write):
    plans.append(str(bound.plan))
    return record(self, encoder, bound, write)

Sink.record = remembered

async def run(source):
    """Run statements, and print the value of each expression; return the plans, and whether all ran."""
    plans.clear()
    try:
        for node in ast.parse(source).body:
            text = "\\n" * (node.lineno - 1) + ast.get_source_segment(source, node)
            value = await eval_code_async(text, names, filename="editor")
            if value is not None and isinstance(node, ast.Expr):
                print(value)
        ran = True
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "editor"]
        line = f"line {frames[-1].lineno}: " if frames else ""
        print(line + "".join(traceback.format_exception_only(error)).strip())
        ran = False
    return "\\n\\n".join(plans), ran

async def slice_picture(pixels, shape, line):
    """Slice pixels by a line of Python; return rows, columns and bytes."""
    plans.clear()
    picture = wg.asarray(np.asarray(pixels.to_py(), np.uint8).reshape(shape))
    result = await eval_code_async(line, {"picture": picture, "np": np, "wg": wg})
    if result.ndim != 3 or result.shape[2] != 4 or result.dtype != np.uint8 or not result.size:
        raise ValueError(f"the line gives {result.dtype} {result.shape}: must be uint8 of (rows, columns, 4)")
    array = await result.numpy_async()
    return array.shape[0], array.shape[1], array.tobytes()
`;

let python = null; // a promise of the functions of PAGE
let lines = [];

function report(text, isError = false) {
  at("status").textContent = text;
  at("status").classList.toggle("error", isError);
}

async function load() {
  const step = (value, text) => {
    at("progress").value = value;
    report(text);
  };
  at("progress").hidden = false;
  const begun = performance.now();
  step(0, "Loading Python: 14 MB");
  const { address } = await (await fetch(new URL("where.json", FOLDER))).json();
  const core = new URL(address, FOLDER).href;
  const { loadPyodide } = await import(`${core}pyodide.mjs`);
  const print = (text) => void lines.push(text);
  const pyodide = await loadPyodide({ indexURL: core, stdout: print, stderr: print });
  step(1, "Loading NumPy: 3 MB");
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  step(2, "Loading wgslice");
  const wheel = await (await fetch(new URL("wgslice.zip", FOLDER))).arrayBuffer();
  pyodide.unpackArchive(wheel, "zip", { extractDir: pyodide.runPython("import site; site.getsitepackages()[0]") });
  step(3, "Importing wgslice");
  const functions = pyodide.globals.get("dict")();
  await pyodide.runPythonAsync(PAGE, { globals: functions });
  step(4, "Asking for the GPU");
  await pyodide.runPythonAsync("device = await wg.Device.request_async()", { globals: functions });
  const device = pyodide.runPython("str(device.adapter)", { globals: functions });
  step(5, `Python is ready on ${device}, ${((performance.now() - begun) / 1e3).toFixed(1)} s after the click`);
  at("progress").hidden = true;
  return { run: functions.get("run"), slice: functions.get("slice_picture"), plans: functions.get("plans") };
}

// Loads Python once, and again after a failure.
function ready() {
  python ??= load().catch((error) => {
    python = null;
    at("progress").hidden = true;
    report(`Python could not be loaded: ${lastLine(error)}`, true);
    throw error;
  });
  return python;
}

const lastLine = (error) => String(error.message ?? error).trim().split("\n").at(-1);

async function whileBusy(action) {
  for (const each of [at("run"), at("slice")]) each.disabled = true;
  try {
    await action();
  } catch (error) {
    if (python !== null) report(lastLine(error), true);
  } finally {
    for (const each of [at("run"), at("slice")]) each.disabled = false;
    at("run").textContent = python === null ? "Load 17 MB and run" : "Run";
  }
}

async function run() {
  const { run: runLines } = await ready();
  lines = [];
  const begun = performance.now();
  const result = await runLines(at("editor").value);
  const [plans, ran] = result.toJs();
  result.destroy();
  at("time").textContent = `${(performance.now() - begun).toFixed(0)} ms`;
  at("printed").textContent = lines.join("\n");
  at("printed").classList.toggle("error", !ran);
  at("plans").textContent = plans;
}

async function slice() {
  const { slice: sliceLine, plans } = await ready();
  const { data } = at("picture").getContext("2d").getImageData(0, 0, WIDTH, HEIGHT);
  const result = await sliceLine(data, [HEIGHT, WIDTH, 4], at("line").value);
  const [rows, columns, bytes] = result.toJs();
  result.destroy();
  [at("sliced").width, at("sliced").height] = [columns, rows];
  const pixels = new ImageData(Uint8ClampedArray.from(bytes), columns, rows);
  at("sliced").getContext("2d").putImageData(pixels, 0, 0);
  at("plans").textContent = plans.toJs().join("\n\n");
  report("");
}

async function draw(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  at("picture").getContext("2d", { willReadFrequently: true }).drawImage(image, 0, 0, WIDTH, HEIGHT);
}

async function start() {
  if (!navigator.gpu) {
    report("This page needs WebGPU, which this browser does not offer here: use one that has it, by https.", true);
    return;
  }
  at("editor").value = await (await fetch(new URL("lines.py", FOLDER))).text();
  await draw(new URL("picture.svg", import.meta.url));
  at("run").addEventListener("click", () => whileBusy(run));
  at("slice").addEventListener("click", () => whileBusy(slice));
  at("file").addEventListener("change", async () => {
    const [file] = at("file").files;
    try {
      await draw(URL.createObjectURL(file));
    } catch (error) {
      report(`This browser reads no picture from ${file.name}: ${error.message}`, true);
    }
  });
  report("");
  at("python").hidden = false;
  document.querySelector('img[src*="screenshot"]').parentElement.hidden = true;
}

start().catch((error) => report(`The page could not start: ${error.message}`, true));
