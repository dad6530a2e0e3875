// node spirv.mjs FOLDER PACKAGES: each FOLDER/*.wgsl as SPIR-V beside it, by the naga of PACKAGES/node_modules
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const naga = await import(pathToFileURL(require.resolve("naga-wasm")));
for (const file of readdirSync(folder).filter((name) => name.endsWith(".wgsl"))) {
  const path = `${folder}/${file}`;
  try {
    const module = naga.parseWgsl(readFileSync(path, "utf8"));
    const words = naga.writeSpirv(module, naga.validate(module), {});
    writeFileSync(path.replace(/wgsl$/, "spv"), Buffer.from(words.buffer, words.byteOffset, words.byteLength));
  } catch (error) {
    console.error(`${file}: ${error.formatted ?? error}`);
    process.exitCode = 1;
  }
}
