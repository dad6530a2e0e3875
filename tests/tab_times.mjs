// Turns of JavaScript in a tab, for tab_times.py: saved programs on a device of its own. Each returns seconds per run.

import { load } from "./program.mjs";

/** Loads programs from files of Pyodide's file system; returns the functions that time them. */
export async function turns(folder, tinyRuns, largeRuns) {
  const adapter = await navigator.gpu.requestAdapter();
  const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
  const device = await adapter.requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } });
  const [programs, bound] = [{}, {}];
  for (const name of ["tiny", "flip", "transpose"]) {
    const program = await load(device, (file) => globalThis.pyodide.FS.readFile(`${folder}/${name}/${file}`));
    bound[name] = program.bind({ input: program.createBuffer("input"), output: program.createBuffer("output") });
    programs[name] = program;
  }
  const input = programs.tiny.createBuffer("input");
  const made = () => programs.tiny.bind({ input, output: programs.tiny.createBuffer("output") });
  const host = async (runs, run) => {
    const begun = performance.now();
    for (let n = 0; n < runs; n += 1) run();
    const milliseconds = performance.now() - begun;
    await device.queue.onSubmittedWorkDone();
    return milliseconds / runs / 1e3;
  };
  const whole = async (name) => {
    const begun = performance.now();
    await host(largeRuns, () => bound[name].run());
    return (performance.now() - begun) / largeRuns / 1e3;
  };
  return {
    tiny: () => host(tinyRuns, () => made().run()),
    bound: () => host(tinyRuns, () => bound.tiny.run()),
    flip: () => whole("flip"),
    transpose: () => whole("transpose"),
  };
}
