// Runs saved programs, beside program.mjs, on a device of `gpu`, and compares all bytes; in Node.js and on pages.
import { load } from "./program.mjs";

/**
 * Returns adapter, driver, what is wrong by program, and the milliseconds of the slowest pipeline and its program;
 * null without an adapter. `read` returns a file's bytes.
 */
export async function run(gpu, read) {
  const adapter = await gpu.requestAdapter();
  if (!adapter) return null;
  const device = await adapter.requestDevice();
  const names = JSON.parse(new TextDecoder().decode(await read("cases.json")));
  const [wrong, kept] = [{}, []];
  const compile = device.createComputePipelineAsync.bind(device);
  const slowest = { ms: 0, program: "" };
  let running = "";
  let last = Promise.resolve();
  device.createComputePipelineAsync = (descriptor) => { // one at a time, so that each has a time of its own
    const made = last.then(async () => {
      const began = performance.now();
      const pipeline = await compile(descriptor);
      const ms = Math.round(performance.now() - began);
      if (ms > slowest.ms) Object.assign(slowest, { ms, program: running });
      return pipeline;
    });
    last = made.catch(() => {});
    return made;
  };
  for (const name of names) {
    running = name;
    device.pushErrorScope("internal");
    device.pushErrorScope("validation");
    const found = await difference(device, (file) => read(`${name}/${file}`), kept).catch((error) => `${error}`);
    const refusals = [await device.popErrorScope(), await device.popErrorScope()];
    const refusal = refusals.find((each) => each);
    if (refusal || found) wrong[name] = refusal?.message ?? found;
  }
  const { vendor, architecture, device: model, description } = adapter.info;
  return { adapter: model || `${vendor} ${architecture}`, driver: description, slowest, wrong };
}

/** Describes the first tensor of a program that is not as wanted; empty if there is none. */
async function difference(device, read, kept) {
  const program = await load(device, read);
  kept.push(program.pipelines); // which WebGPU finds again while they live, instead of compiling their equals
  const given = {};
  for (const name in program.inputs) given[name] = program.createBuffer(name, await read(`${name}.in`));
  const bound = program.bind(given);
  bound.run();
  let found = "";
  for (const which of [...program.outputs.keys(), ...Object.keys(given)]) {
    const [elements, wanted] = [await bound.read(which), await read(`${which}.want`)];
    const bytes = new Uint8Array(elements.buffer);
    const first = bytes.findIndex((byte, index) => byte !== wanted[index]);
    if (bytes.length !== wanted.length || first >= 0) found ||= `${which}: byte ${first} of ${bytes.length} is wrong`;
  }
  for (const buffer of bound.buffers) buffer?.destroy();
  return found;
}
