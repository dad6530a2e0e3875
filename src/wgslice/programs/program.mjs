// Runs saved programs of wgslice on WebGPU, without dependencies: load, bind, run, read. program.d.mts has the types.
// It trusts the folder: only WebGPU's validation checks the WGSL, the sizes, the indices and the offsets of the files.

const USAGES = { "copy-src": 0x4, "copy-dst": 0x8, uniform: 0x40, storage: 0x80 };
const [MAP_READ, COPY_DST, COPIED, COMPUTE, READ_MODE] = [0x1, 0x8, 0x4 | 0x8, 0x4, 0x1]; // WebGPU fixes these
const [COPY_SRC_TEXTURE, FRAME_USAGES] = [0x1, 0x1 | 0x2 | 0x4 | 0x10]; // a frame is copied, sampled and rendered
const bits = (names) => names.reduce((sum, name) => sum | USAGES[name], 0);
const ROW_ALIGNMENT = 256; // of rows in a buffer that is copied from or to a texture
const ARRAYS = {
  bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array,
  int32: Int32Array, float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array,
};

/** Loads a program. `source` is the folder's URL, or an async function from a file's name to its bytes. */
export async function load(device, source) {
  const read = typeof source === "function" ? source : async (name) => {
    const response = await fetch(new URL(name, String(source).replace(/\/*$/, "/")));
    if (!response.ok) throw new Error(`${response.url}: status ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  };
  const text = async (name) => new TextDecoder().decode(await read(name));
  const description = JSON.parse(await text("program.json"));
  if (description.format !== "wgslice program" || description.version !== 1) {
    throw new Error("program.json: is no program of version 1");
  }
  for (const [name, needed] of Object.entries(description.limits)) {
    const has = device.limits[name];
    if (name.startsWith("min") ? has > needed : has < needed) {
      throw new Error(`the device has ${name} ${has}: the program needs ${needed}`);
    }
  }
  const modules = (await Promise.all(description.modules.map(text))).map((code) => device.createShaderModule({ code }));
  const pipelines = await Promise.all(description.pipelines.map(async (each) => {
    const entries = each.bindings.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }));
    const group = device.createBindGroupLayout({ entries });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [group] });
    const compute = { module: modules[each.module], entryPoint: each.entryPoint, constants: each.constants };
    return { group, pipeline: await device.createComputePipelineAsync({ layout, compute }) };
  }));
  const buffers = await Promise.all(description.buffers.map(async ({ role, size, usage, file }) => {
    if (role === "input") return null;
    const buffer = device.createBuffer({ size, usage: bits(usage) | COPY_DST });
    if (file) device.queue.writeBuffer(buffer, 0, await read(file));
    return buffer;
  }));
  return new Program(device, description, pipelines, buffers);
}

/** A loaded program: its inputs and outputs, as program.json describes them. */
export class Program {
  constructor(device, description, pipelines, buffers) {
    Object.assign(this, { device, description, pipelines, buffers });
    this.inputs = Object.fromEntries(description.inputs.map((each) => [each.name, each]));
    this.outputs = description.outputs;
  }

  /** Makes a zeroed buffer for an input, or one with the elements of an array, which is in row-major order. */
  createBuffer(name, array) {
    const input = this.input(name);
    const { size, usage } = this.description.buffers[input.buffer];
    const nbytes = byteLength(input);
    if (array && array.byteLength !== nbytes) {
      const needed = `an array of ${nbytes} bytes, ${input.dtype} [${input.shape}]`;
      throw new Error(`${name}: the array has ${array.byteLength} bytes; the input needs ${needed}`);
    }
    const buffer = this.device.createBuffer({ size, usage: bits(usage) });
    if (array) {
      const [bytes, elements] = [new Uint8Array(size), new Uint8Array(array.buffer ?? array, array.byteOffset, nbytes)];
      forEachByte(input, (number, place) => { bytes[place] = elements[number]; });
      this.device.queue.writeBuffer(buffer, 0, bytes);
    }
    return buffer;
  }

  input(name) {
    if (Object.hasOwn(this.inputs, name)) return this.inputs[name];
    throw new Error(`${name}: the inputs are ${Object.keys(this.inputs).join(", ")}`);
  }

  /** Finds an output by its index, its key or its path of keys and indices in the result; or an input by its name. */
  tensor(which) {
    const { inputs, outputs, description: { result } } = this;
    if (typeof which === "string" && Object.hasOwn(inputs, which)) return inputs[which];
    const items = (part) => Object.entries(part?.dict ?? part?.list ?? part?.tuple ?? {});
    const inside = (part, key) => new Map(items(part)).get(String(key));
    const found = outputs[typeof which === "number" ? which : [which].flat().reduce(inside, result)];
    if (found) return found;
    const names = `the inputs are ${Object.keys(inputs).join(", ")}`;
    throw new Error(`${which}: the result is ${JSON.stringify(result)}, of ${outputs.length} outputs; ${names}`);
  }

  /** Binds a buffer, {buffer, offset}, a texture, or a function that returns a run's texture to each input. */
  bind(given) {
    const [buffers, offsets] = [[...this.buffers], this.buffers.map(() => 0)];
    const [before, after] = [[], []];
    for (const name of Object.keys(given)) this.input(name);
    for (const input of this.description.inputs) {
      const [one, { size }] = [given[input.name], this.description.buffers[input.buffer]];
      if (!one) throw new Error(`${input.name}: is missing`);
      const isTexture = typeof one === "function" || "format" in one;
      const [buffer, offset] = [isTexture ? this.createBuffer(input.name) : one.buffer ?? one, one.offset ?? 0];
      if (offset % this.device.limits.minStorageBufferOffsetAlignment || buffer.size < offset + size) {
        throw new Error(`${input.name}: needs ${size} bytes from a multiple of the binding alignment on`);
      }
      [buffers[input.buffer], offsets[input.buffer]] = [buffer, offset];
      if (!isTexture) continue;
      const current = typeof one === "function" ? one : () => one;
      before.push(texels(this.device, input, current, buffer, false));
      if (input.written) after.push(texels(this.device, input, current, buffer, true));
    }
    const steps = this.description.steps.map((step) => this.bound(step, buffers, offsets));
    return new Bound(this, buffers, offsets, [...before, ...steps, ...after]);
  }

  /** Returns a function that records a step, given an open encoder and a function that returns a compute pass. */
  bound({ clear, copy, dispatch }, buffers, offsets) {
    const place = (index, offset) => [buffers[index], offsets[index] + offset];
    if (clear) return ({ encoder }) => encoder.clearBuffer(...place(clear.buffer, clear.offset), clear.size);
    if (copy) {
      const pairs = copy.offsets.map(([from, to]) => [...place(copy.source, from), ...place(copy.target, to)]);
      return ({ encoder }) => pairs.forEach((pair) => encoder.copyBufferToBuffer(...pair, copy.size));
    }
    const { group: layout, pipeline } = this.pipelines[dispatch.pipeline];
    const entries = dispatch.bindings.map(([index, start, size], binding) => {
      const [buffer, offset] = place(index, start);
      return { binding, resource: { buffer, offset, size } };
    });
    const group = this.device.createBindGroup({ layout, entries });
    return Object.assign(({ pass }) => {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...dispatch.workgroups);
    }, { inPass: true });
  }
}

/** A program with its buffers. */
class Bound {
  constructor(program, buffers, offsets, steps) { Object.assign(this, { program, buffers, offsets, steps }); }

  /** Records one run into an encoder, or submits it. */
  run(encoder) {
    const { device } = this.program;
    const own = encoder ?? device.createCommandEncoder();
    let pass = null;
    for (const step of this.steps) {
      if (!step.inPass) pass?.end();
      pass = step.inPass ? pass ?? own.beginComputePass() : null;
      step({ encoder: own, pass });
    }
    pass?.end();
    if (!encoder) device.queue.submit([own.finish()]);
  }

  /** Reads a tensor that `Program.tensor` finds, as an array of its elements in row-major order. */
  async read(which = 0) {
    const { device } = this.program;
    const tensor = this.program.tensor(which);
    const [buffer, base] = [this.buffers[tensor.buffer], this.offsets[tensor.buffer]];
    const { size } = this.program.description.buffers[tensor.buffer];
    const staging = device.createBuffer({ size, usage: MAP_READ | COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, base, staging, 0, size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(READ_MODE);
    const [bytes, elements] = [new Uint8Array(staging.getMappedRange()), new Uint8Array(byteLength(tensor))];
    forEachByte(tensor, (number, place) => { elements[number] = bytes[place]; });
    staging.destroy();
    return new (ARRAYS[tensor.dtype] ?? Uint8Array)(elements.buffer);
  }
}

/** Returns the bytes of a tensor's elements. */
const byteLength = ({ shape, itemsize }) => shape.reduce((product, size) => product * size, itemsize);

/** Visits the number of each byte of a tensor's elements, in row-major order, and its place in the buffer. */
function forEachByte(tensor, visit) {
  const { shape, strides, offset, itemsize } = tensor;
  const [nbytes, index] = [byteLength(tensor), shape.map(() => 0)];
  for (let number = 0, place = offset; number < nbytes; number += itemsize) {
    for (let byte = 0; byte < itemsize; byte += 1) visit(number + byte, place + byte);
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      index[axis] += 1;
      place += strides[axis] * itemsize;
      if (index[axis] < shape[axis]) break;
      place -= index[axis] * strides[axis] * itemsize;
      index[axis] = 0;
    }
  }
}

/** Returns a function that records the copy of a texture's texels to a packed input, or back. */
function texels(device, { name, shape, strides, offset, itemsize }, current, buffer, back) {
  const [height, width, channels = 1] = shape;
  const rowSize = width * channels * itemsize;
  if (offset || rowSize % 4 || strides[0] !== width * channels || strides[1] !== channels) {
    throw new Error(`${name}: a texture needs a packed input whose rows are whole words`);
  }
  const bytesPerRow = Math.ceil(rowSize / ROW_ALIGNMENT) * ROW_ALIGNMENT;
  const padded = bytesPerRow > rowSize ? device.createBuffer({ size: bytesPerRow * height, usage: COPIED }) : buffer;
  return ({ encoder }) => {
    const [texture, image] = [current(), { buffer: padded, bytesPerRow }];
    if (texture.width !== width || texture.height !== height) {
      throw new Error(`${name}: has ${texture.width} x ${texture.height} texels, not ${width} x ${height}`);
    }
    if (!back && !(texture.usage & COPY_SRC_TEXTURE)) return; // such as that of a canvas, which is only written
    if (!back) encoder.copyTextureToBuffer({ texture }, image, [width, height]);
    for (let row = 0; padded !== buffer && row < height; row += 1) {
      const sides = [[padded, row * bytesPerRow], [buffer, row * rowSize]];
      encoder.copyBufferToBuffer(...(back ? sides.reverse() : sides).flat(), rowSize);
    }
    if (back) encoder.copyBufferToTexture(image, { texture }, [width, height]);
  };
}

/** Copies the frame that a canvas, an image or a video shows into a texture of rgba8 texels, new by default. */
export function copyFrame(device, source, size = [source.width, source.height], texture = null) {
  texture ??= device.createTexture({ size, format: "rgba8unorm", usage: FRAME_USAGES });
  device.queue.copyExternalImageToTexture({ source }, { texture }, size);
  return texture;
}
