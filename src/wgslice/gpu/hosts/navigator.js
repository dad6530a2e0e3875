// Calls of WebGPU for navigator.py: each crosses from Python once. Bytes come as Python buffers.
(() => {
  function withBytes(data, use) {
    const view = data.getBuffer("u8"); // of Python's memory, which JavaScript calls do not move
    try {
      return use(view.data);
    } finally {
      view.release();
    }
  }

  const SOFTWARE = /swiftshader|llvmpipe|lavapipe|microsoft basic render driver/i;

  const kindOf = (error) =>
    error instanceof GPUOutOfMemoryError ? "out-of-memory" : error instanceof GPUValidationError ? "validation" : "internal";

  // Resolves to why a promise has failed, and to nothing if it has not; the loss of a device is reported before.
  async function failure(promise) {
    try {
      await promise;
      return "";
    } catch (error) {
      await new Promise((resume) => void setTimeout(resume));
      return String(error);
    }
  }

  return {
    requestAdapter: async () => (await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" })) ?? null,

    async requestDevice(adapter, ...requiredFeatures) {
      const fresh = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" }); // which makes one device
      const requiredLimits = {};
      for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
      return fresh.requestDevice({ requiredFeatures, requiredLimits });
    },

    // What a device tells of its adapter.
    adapterOf: ({ features, limits, adapterInfo }) => ({ features, limits, info: adapterInfo ?? {} }),

    describe({ info }) {
      const known = info.device && !info.device.startsWith("0x") ? info.device : "";
      const name = known || info.description || `${info.vendor ?? ""} ${info.architecture ?? ""}`.trim();
      const software = info.isFallbackAdapter || SOFTWARE.test(`${name} ${info.architecture}`);
      const description = (info.description ?? "") === name ? "" : info.description ?? "";
      return { device: name, description, adapter_type: software ? "CPU" : "Unknown" };
    },

    // By their names as wgpu-py writes them, such as max-buffer-size.
    limits(device) {
      const found = {};
      for (const name in device.limits) found[name.replace(/[A-Z]/g, (each) => `-${each.toLowerCase()}`)] = device.limits[name];
      return found;
    },

    // The name of the interface that a value has, such as GPUBuffer.
    interfaceOf: (value) => value?.constructor?.name ?? "",

    // Calls functions of the kind and the text of an error, and of why the device is lost.
    watch(device, onError, onLost) {
      device.addEventListener("uncapturederror", (event) => {
        event.preventDefault(); // a call raises it
        onError(kindOf(event.error), event.error.message);
      });
      device.lost.then(({ reason, message }) => onLost(`${reason} ${message}`));
    },

    push: (device, kind) => device.pushErrorScope(kind),
    pop: (device) => device.popErrorScope().then((error) => (error ? [kindOf(error), error.message] : null)),

    createBuffer: (device, size, usage) => device.createBuffer({ size, usage }),

    // Waits for the browser's memory; the result is null where there is none.
    async allocate(device, size, usage) {
      device.pushErrorScope("out-of-memory");
      const buffer = device.createBuffer({ size, usage });
      return (await device.popErrorScope()) === null ? buffer : null;
    },

    createBufferWithData(device, data, usage) {
      return withBytes(data, (bytes) => {
        const size = Math.max(Math.ceil(bytes.length / 4) * 4, 4);
        const buffer = device.createBuffer({ size, usage, mappedAtCreation: true });
        new Uint8Array(buffer.getMappedRange()).set(bytes);
        buffer.unmap();
        return buffer;
      });
    },

    writeBuffer: (queue, buffer, offset, data) => withBytes(data, (bytes) => queue.writeBuffer(buffer, offset, bytes)),

    readMapped: (buffer, offset, size, into) =>
      withBytes(into, (bytes) => bytes.set(new Uint8Array(buffer.getMappedRange(offset, size)))),

    map: (buffer, mode, offset, size) => failure(buffer.mapAsync(mode, offset, size)),
    done: (queue) => failure(queue.onSubmittedWorkDone()),

    createBindGroupLayout: (device, entries) => device.createBindGroupLayout({ entries: JSON.parse(entries) }),

    createPipelineLayout: (device, ...bindGroupLayouts) => device.createPipelineLayout({ bindGroupLayouts }),

    createShaderModule: (device, label, code) => device.createShaderModule({ label, code }),

    createComputePipeline: (device, layout, module, entryPoint, constants) =>
      device.createComputePipeline({ layout, compute: { module, entryPoint, constants: JSON.parse(constants) } }),

    createBindGroup(device, layout, ...ranges) {
      const entries = [];
      for (let at = 0; at < ranges.length; at += 4) {
        const resource = { buffer: ranges[at + 1], offset: ranges[at + 2], size: ranges[at + 3] };
        entries.push({ binding: ranges[at], resource });
      }
      return device.createBindGroup({ layout, entries });
    },

    createCommandEncoder: (device) => device.createCommandEncoder(),
    beginComputePass: (encoder) => encoder.beginComputePass(),
    setPipeline: (pass, pipeline) => pass.setPipeline(pipeline),
    setBindGroup: (pass, index, group) => pass.setBindGroup(index, group),
    dispatch: (pass, x, y, z) => pass.dispatchWorkgroups(x, y, z),
    endPass: (pass) => pass.end(),
    finish: (encoder) => encoder.finish(),
    submit: (queue, ...commands) => queue.submit(commands),
    copyBuffer: (encoder, ...values) => encoder.copyBufferToBuffer(...values),
    clearBuffer: (encoder, buffer, offset, size) => encoder.clearBuffer(buffer, offset, size),

    copyTexels(encoder, texture, x, y, z, mipLevel, aspect, buffer, offset, bytesPerRow, rowsPerImage, width, height, depth, writes) {
      const texels = { texture, mipLevel, aspect, origin: [x, y, z] };
      const rows = { buffer, offset, bytesPerRow, rowsPerImage };
      if (writes) encoder.copyBufferToTexture(rows, texels, [width, height, depth]);
      else encoder.copyTextureToBuffer(texels, rows, [width, height, depth]);
    },

    createTexture: (device, descriptor) => device.createTexture(JSON.parse(descriptor)),

    describeTexture: ({ width, height, depthOrArrayLayers, dimension, format, mipLevelCount, sampleCount, usage, label }) => ({
      size: [width, height, depthOrArrayLayers],
      mip_level_count: mipLevelCount,
      sample_count: sampleCount,
      ...{ dimension, format, usage, label },
    }),
  };
})();
