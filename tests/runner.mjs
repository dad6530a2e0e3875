// Runs saved programs by program.mjs on a device that only copies, and prints what it reads and refuses as JSON.
import { readFile } from "node:fs/promises";

const [runner, folder] = process.argv.slice(2);
const { load } = await import(runner);

/** A device without kernels: buffers are bytes. */
const device = {
  limits: { minStorageBufferOffsetAlignment: 1 },
  queue: { submit() {}, writeBuffer: (buffer, offset, data) => buffer.bytes.set(data, offset) },
  createBuffer({ size }) {
    const bytes = new Uint8Array(size);
    return { size, bytes, mapAsync() {}, getMappedRange: () => bytes.buffer, destroy() {} };
  },
  createCommandEncoder: () => ({
    copyBufferToBuffer: (source, from, target, to, size) => target.bytes.set(source.bytes.slice(from, from + size), to),
    finish() {},
  }),
};
const program = await load(device, (name) => readFile(`${folder}/${name}`));
const given = {
  x: program.createBuffer("x", Int16Array.of(1, 2, 3, 4, 5, 6)),
  y: program.createBuffer("y", Uint8Array.of(7, 8, 9).buffer),
};
const bound = program.bind(given);
bound.run();

const [read, refused] = [[], []];
for (const which of [undefined, 2, "x", "y", "left", ["left"], ["both", 0], ["both", "1", "inner"]]) {
  read.push([...await bound.read(which)]);
}
for (const which of [3, -1, "right", "toString", ["both"], ["both", 2], ["both", "length"], ["left", 0]]) {
  refused.push(await bound.read(which).then(String, (error) => error.message));
}
for (const array of [new Int16Array(5), new Int16Array(7), [1, 2, 3, 4, 5, 6]]) {
  try { refused.push(`${program.createBuffer("x", array)}`); } catch (error) { refused.push(error.message); }
}
console.log(JSON.stringify({ stored: [...new Int16Array(given.x.bytes.buffer)], read, refused }));
