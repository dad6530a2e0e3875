// Makes pipelines by Tint, the compiler of Chromium and Dawn, without a GPU, and prints what it refuses as JSON.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const [packages, file] = process.argv.slice(2);
const { create, globals } = await import(createRequire(`${packages}/`).resolve("webgpu"));
const gpu = (globalThis.gpu = create(["backend=null"])); // Dawn's objects crash once `gpu` is collected
const device = await (await gpu.requestAdapter()).requestDevice();
const [modules, refused] = [new Map(), {}];
for (const { name, code, entryPoint, constants, types } of JSON.parse(await readFile(file, "utf-8"))) {
  if (!modules.has(code)) modules.set(code, device.createShaderModule({ code }));
  const entries = types.map((type, binding) => ({
    binding, visibility: globals.GPUShaderStage.COMPUTE, buffer: { type },
  }));
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  const compute = { module: modules.get(code), entryPoint, constants };
  device.pushErrorScope("validation");
  await device.createComputePipelineAsync({ layout, compute }).catch((error) => { refused[name] = error.message; });
  await device.popErrorScope();
}
console.log(JSON.stringify(refused));
process.exit(0);
