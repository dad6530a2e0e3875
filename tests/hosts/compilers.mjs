// node.exe compilers.mjs FOLDER PROFILE: compiles each FOLDER/NAME.hlsl by Microsoft's compilers, FXC for cs_5_1 and
// DXC for later profiles, and writes FOLDER/PROFILE.json: milliseconds and name of the slowest, and messages by name.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, profile] = process.argv.slice(2);
const koffi = createRequire(import.meta.url)("koffi");
const STRICT = 1 << 11; // as wgpu has it
const UTF8 = 65001;
const DXC_COMPILER = guid("73e22d93", "e6ce", "47f3", "b5bff0664f39c1b0");
const COMPILER_3 = guid("228b4687", "5a6a", "4730", "900c9702b2203f54");
const RESULT = guid("58346cda", "dde7", "4497", "94616f87af5e0659");
// The zeroing of workgroup memory, on which FXC spends 10 s, and which wgpu-native does not ask naga for.
const ZEROING = /^ {4}if \(local_invocation_index == 0\) \{[^}]*\}\n {4}GroupMemoryBarrierWithGroupSync\(\);\n/m;
koffi.struct("Source", { data: "void *", size: "size_t", encoding: "uint32_t" });

/** Returns the bytes of an identifier: of its four parts, three are numbers. */
function guid(...parts) {
  const bytes = parts.map((each) => Buffer.from(each, "hex"));
  return Buffer.concat(bytes.map((each, at) => (at < 3 ? each.reverse() : each)));
}

/** Returns a function that calls a method by its place among those of an object. */
function method(place, result, ...types) {
  const type = koffi.proto(null, result, ["void *", ...types]);
  return (object, ...given) => {
    const methods = koffi.decode(object, "void *");
    return koffi.call(koffi.decode(methods + BigInt(8 * place), "void *"), type, object, ...given);
  };
}
const [pointer, size] = [method(3, "void *"), method(4, "size_t")]; // of a blob
const textOf = (blob) => (blob ? koffi.decode(pointer(blob), "char", Number(size(blob))) : "");
const out = koffi.out(koffi.pointer("void *"));

const compilers = {
  fxc: () => {
    const compile = koffi.load("d3dcompiler_47.dll").func("D3DCompile", "int", [
      "void *", "size_t", "str", "void *", "void *", "str", "str", "uint32_t", "uint32_t", out, out,
    ]);
    return (text, entryPoint) => {
      const [code, errors] = [[null], [null]];
      const status = compile(text, text.length, null, null, null, entryPoint, profile, STRICT, 0, code, errors);
      return status ? textOf(errors[0]) || `status ${status}` : "";
    };
  },
  dxc: () => {
    const create = koffi.load("dxcompiler.dll").func("DxcCreateInstance", "int", ["void *", "void *", out]);
    const compile = method(3, "int", "Source *", "str16 *", "uint32_t", "void *", "void *", out);
    const [getStatus, getErrors] = [method(3, "int", koffi.out(koffi.pointer("int"))), method(5, "int", out)];
    const compiler = [null];
    create(DXC_COMPILER, COMPILER_3, compiler);
    return (text, entryPoint) => {
      const given = ["-E", entryPoint, "-T", profile, "-HV", "2018", "-no-warnings"];
      const [result, status, errors] = [[null], [0], [null]];
      const source = { data: text, size: text.length, encoding: UTF8 };
      compile(compiler[0], source, given, given.length, null, RESULT, result);
      getStatus(result[0], status);
      getErrors(result[0], errors);
      return status[0] ? textOf(errors[0]) || `status ${status[0]}` : "";
    };
  },
};

const [wrong, compile] = [{}, compilers[profile === "cs_5_1" ? "fxc" : "dxc"]()];
const slowest = { ms: 0, program: "" };
for (const file of readdirSync(folder).filter((name) => name.endsWith(".hlsl"))) {
  const text = Buffer.from(readFileSync(`${folder}/${file}`, "utf8").replace(ZEROING, ""));
  const entryPoint = /numthreads.*\s+void (\w+)/.exec(text)[1];
  const began = performance.now();
  const message = compile(text, entryPoint);
  const [ms, name] = [Math.round(performance.now() - began), file.slice(0, -".hlsl".length)];
  if (ms > slowest.ms) Object.assign(slowest, { ms, program: name });
  if (message) wrong[name] = message;
}
writeFileSync(`${folder}/${profile}.json`, JSON.stringify({ slowest, wrong }));
process.exit(0);
