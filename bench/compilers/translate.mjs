// node translate.mjs FOLDER PACKAGES LANGUAGE...: each FOLDER/ENTRY-NUMBER.wgsl in languages (spv, hlsl, msl, glsl)
// beside it, by the naga of PACKAGES/node_modules
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, packages, ...languages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const naga = await import(pathToFileURL(require.resolve("naga-wasm")));
const WRITERS = {
  spv: (module, info) => Buffer.from(naga.writeSpirv(module, info, {}).buffer),
  hlsl: (module, info) => naga.writeHlsl(module, info, {}),
  msl: (module, info) => naga.writeMsl(module, info, { langVersion: [2, 0] }),
  glsl: (module, info, entryPoint) => naga.writeGlsl(module, info, { version: "430", stage: "compute", entryPoint }),
};
for (const file of readdirSync(folder).filter((name) => name.endsWith(".wgsl"))) {
  const path = `${folder}/${file}`;
  for (const language of languages) {
    try {
      const module = naga.parseWgsl(readFileSync(path, "utf8"));
      const info = naga.validate(module);
      writeFileSync(path.replace(/wgsl$/, language), WRITERS[language](module, info, file.replace(/-\d+\.wgsl$/, "")));
    } catch (error) {
      console.error(`${file}, ${language}: ${error.formatted ?? error}`);
      process.exitCode = 1;
    }
  }
}
