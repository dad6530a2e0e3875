// node.exe windows.mjs FOLDER HOST, one of HOSTS: runs the saved programs of a folder on Direct3D 12, and writes
// FOLDER/HOST.json, because node.exe cannot write to pipes under Wine.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { create as createNative } from "./native.mjs";

const [folder, host] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const koffi = require("koffi");
const [DX12, FEATURE_LEVEL_11_0, PAGE_READWRITE] = [1 << 3, 0xb000, 4];
const ID3D12_DEVICE = Buffer.from("f1199818b61d574bbe541821339b85f7", "hex");
const CREATE_SHARED_HANDLE = 31; // its place among the methods of ID3D12Device
const HOSTS = {
  Dawn: async () => {
    shareFences();
    const { create, globals } = await import("webgpu");
    Object.assign(globalThis, globals);
    return create(["backend=d3d12"]);
  },
  "wgpu-native": async () => native(true),
  "wgpu-native without checks": async () => native(false),
};

function native(checked) {
  const headers = ["webgpu.h", "wgpu.h"].map((name) => readFileSync(new URL(name, import.meta.url), "utf8"));
  return createNative(koffi, "wgpu_native-release.dll", headers, DX12, checked);
}

/** Lets Dawn share the handles of fences, which it does not use: vkd3d has none, so that it gets those of events. */
function shareFences() {
  const [d3d12, kernel32] = ["d3d12.dll", "kernel32.dll"].map((name) => koffi.load(name));
  const createDevice = d3d12.func("int D3D12CreateDevice(void *adapter, int level, void *id, _Out_ void **device)");
  const createEvent = kernel32.func("void *CreateEventW(void *security, int manual, int state, void *name)");
  const protect = kernel32.func("int VirtualProtect(void *start, size_t size, uint32_t now, _Out_ uint32_t *before)");
  const device = [null];
  const status = createDevice(null, FEATURE_LEVEL_11_0, ID3D12_DEVICE, device);
  if (status) throw new Error(`D3D12CreateDevice returned ${status}`);
  const method = koffi.decode(device[0], "void *") + BigInt(8 * CREATE_SHARED_HANDLE);
  const type = koffi.proto("int CreateSharedHandle(void *, void *, void *, uint32_t, void *, void *)");
  const share = (...given) => {
    koffi.encode(given.at(-1), "void *", createEvent(null, 1, 0, null));
    return 0;
  };
  protect(method, 8, PAGE_READWRITE, [0]);
  koffi.encode(method, "void *", koffi.register(share, koffi.pointer(type)));
}

let result;
try {
  const { run } = await import(pathToFileURL(`${folder}/matrix.mjs`));
  globalThis.gpu = await HOSTS[host](); // Dawn's objects crash once it is collected
  result = await run(globalThis.gpu, async (name) => readFileSync(`${folder}/${name}`));
} catch (error) {
  result = { error: `${error.stack ?? error}` };
}
writeFileSync(`${folder}/${host}.json`, JSON.stringify(result));
process.exit(0);
