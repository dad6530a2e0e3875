// As much of WebGPU's JavaScript interface as saved programs use, on the library of wgpu-native by koffi.

const [ALLOW_SPONTANEOUS, SHADER_SOURCE_WGSL, INSTANCE_EXTRAS, FXC] = [3, 2, 0x30004, 1]; // as in the headers
const TYPES = { uniform: 2, storage: 3, "read-only-storage": 4 };

/**
 * Returns a `gpu` whose adapters are those of a backend, which is a bit of WGPUInstanceBackend. Unless `checked`, its
 * modules neither clamp indices nor count iterations.
 */
export function create(koffi, library, headers, backends, checked) {
  const wgpu = bindings(koffi, library, headers);
  const text = ({ data, length }) => (data ? koffi.decode(data, "char", Number(length)) : "");

  /** Calls `start` with a description of a callback, and `poll` until that is called; returns its arguments. */
  function reported(name, start, poll = () => {}) {
    let got = null;
    const registered = wgpu.callback(name, (...values) => { got = values; });
    start({ mode: ALLOW_SPONTANEOUS, callback: registered });
    while (!got) poll();
    koffi.unregister(registered);
    return got;
  }

  const extras = wgpu.chained("InstanceExtras", INSTANCE_EXTRAS, { backends, dx12ShaderCompiler: FXC });
  const instance = wgpu.CreateInstance({ nextInChain: extras });
  return { requestAdapter: async () => {
    const [, adapter] = reported("RequestAdapter", (how) => wgpu.InstanceRequestAdapter(instance, null, how));
    if (!adapter) return null;
    const info = wgpu.AdapterGetInfo(adapter, {});
    const names = ["vendor", "architecture", "device", "description"];
    const named = Object.fromEntries(names.map((each) => [each, text(info[each])]));
    return { info: named, requestDevice: async () => requestDevice(adapter) };
  } };

  function requestDevice(adapter) {
    let refusal = null; // the first one since it was asked for
    const callback = wgpu.callback("UncapturedError", (_, kind, said) => { refusal ??= { message: text(said) }; });
    const described = { uncapturedErrorCallbackInfo: { callback } };
    const [, device] = reported("RequestDevice", (how) => wgpu.AdapterRequestDevice(adapter, described, how));
    const queue = wgpu.DeviceGetQueue(device);
    const pipelines = new Map(); // by their descriptions: wgpu compiles equal ones again

    const buffer = (descriptor) => {
      const [handle, { size }] = [wgpu.DeviceCreateBuffer(device, descriptor), descriptor];
      return {
        handle, size,
        mapAsync: async (mode) => reported(
          "BufferMap", (how) => wgpu.BufferMapAsync(handle, mode, 0, size, how), () => wgpu.DevicePoll(device, 1, null),
        ),
        getMappedRange: () => koffi.view(wgpu.BufferGetConstMappedRange(handle, 0, size), size).slice(0),
        destroy: () => wgpu.BufferRelease(handle),
      };
    };
    const pass = (handle) => ({
      setPipeline: (pipeline) => wgpu.ComputePassEncoderSetPipeline(handle, pipeline),
      setBindGroup: (index, group) => wgpu.ComputePassEncoderSetBindGroup(handle, index, group, 0, null),
      dispatchWorkgroups: (...counts) => wgpu.ComputePassEncoderDispatchWorkgroups(handle, ...counts),
      end: () => wgpu.ComputePassEncoderEnd(handle),
    });
    const encoder = (handle) => ({
      clearBuffer: (target, ...range) => wgpu.CommandEncoderClearBuffer(handle, target.handle, ...range),
      copyBufferToBuffer: (source, from, target, to, size) =>
        wgpu.CommandEncoderCopyBufferToBuffer(handle, source.handle, from, target.handle, to, size),
      beginComputePass: () => pass(wgpu.CommandEncoderBeginComputePass(handle, null)),
      finish: () => wgpu.CommandEncoderFinish(handle, null),
    });

    return {
      limits: wgpu.DeviceGetLimits(device, {}),
      queue: {
        writeBuffer: (target, offset, bytes) =>
          wgpu.QueueWriteBuffer(queue, target.handle, offset, bytes, bytes.byteLength),
        submit: (commands) => wgpu.QueueSubmit(queue, commands.length, commands),
      },
      pushErrorScope: () => { refusal = null; },
      popErrorScope: async () => refusal, // all scopes have the same
      createBuffer: buffer,
      createCommandEncoder: () => encoder(wgpu.DeviceCreateCommandEncoder(device, null)),
      createShaderModule: ({ code }) => {
        const nextInChain = wgpu.chained("ShaderSourceWGSL", SHADER_SOURCE_WGSL, { code });
        const handle = checked
          ? wgpu.DeviceCreateShaderModule(device, { nextInChain })
          : wgpu.DeviceCreateShaderModuleTrusted(device, { nextInChain }, 0);
        return { code, handle };
      },
      createBindGroupLayout: ({ entries: given }) => {
        const entries = given.map((each) => ({ ...each, buffer: { type: TYPES[each.buffer.type] } }));
        return wgpu.DeviceCreateBindGroupLayout(device, { entryCount: entries.length, entries });
      },
      createPipelineLayout: ({ bindGroupLayouts }) =>
        wgpu.DeviceCreatePipelineLayout(device, { bindGroupLayoutCount: bindGroupLayouts.length, bindGroupLayouts }),
      createBindGroup: ({ layout, entries: given }) => {
        const entries = given.map(({ binding, resource: { buffer: { handle }, ...range } }) =>
          ({ binding, buffer: handle, ...range }));
        return wgpu.DeviceCreateBindGroup(device, { layout, entryCount: entries.length, entries });
      },
      createComputePipelineAsync: async ({ layout, compute: { module, entryPoint, constants: values } }) => {
        const constants = Object.entries(values).map(([key, value]) => ({ key, value }));
        const key = JSON.stringify([module.code, entryPoint, constants]);
        if (pipelines.has(key)) return pipelines.get(key);
        const compute = { module: module.handle, entryPoint, constantCount: constants.length, constants };
        const pipeline = wgpu.DeviceCreateComputePipeline(device, { layout, compute });
        if (refusal) throw new Error(refusal.message);
        pipelines.set(key, pipeline);
        return pipeline;
      },
    };
  }
}

/** Returns the library's functions, without `wgpu` before their names. They take plain objects for structs. */
function bindings(koffi, library, headers) {
  const text = headers.join("\n").replace(/\/\*[^]*?\*\/|\/\/.*|\b(WGPU_NULLABLE|const|struct(?= \w+ *\*))\b/g, "");
  const loaded = koffi.load(library);
  const is = (kind, name) => new RegExp(`typedef ${kind} ${name}\\b`).test(text);
  const declared = (list) => list.split(/[,;]/).map((each) => /(\w+)\s*(\*?)\s*(\w+)\s*$/.exec(each)).filter(Boolean);
  const structs = new Map([["WGPUNativeDisplayHandle", []]]); // has a union, which is left zero
  koffi.struct("WGPUNativeDisplayHandle", { unused: koffi.array("uint64_t", 4) });

  /** Returns the fields of a struct; null if it is none. */
  function fieldsOf(name) {
    if (!structs.has(name)) {
      const body = new RegExp(`typedef struct ${name}\\s*\\{([^{}]*)\\}`).exec(text)?.[1];
      const fields = body === undefined ? null : declared(body);
      structs.set(name, fields);
      const types = fields?.map(([, base, star, field]) => [field, typeOf(base, star)]);
      if (types) koffi.struct(name, Object.fromEntries(types));
    }
    return structs.get(name);
  }

  function typeOf(base, star) {
    if (base === "WGPUChainedStruct" && star) return "void *";
    if (fieldsOf(base)) return star ? koffi.pointer(base) : base;
    if (!base.startsWith("WGPU")) return star ? "void *" : base;
    if (base === "WGPUBool") return "uint32_t";
    if (is("enum", base)) return star ? "void *" : "int";
    if (is("WGPUFlags", base)) return "uint64_t";
    return star ? "void **" : "void *"; // handles and callbacks
  }

  /** Returns a value with all fields of its structs. */
  function filled(base, star, value) {
    if (base === "WGPUStringView" && typeof value === "string") {
      return { data: Buffer.from(value), length: Buffer.byteLength(value) };
    }
    if (Array.isArray(value)) return value.length ? value.map((each) => filled(base, "", each)) : null;
    const type = typeOf(base, star);
    const isPointer = star || type === "void *";
    if (type === "void *" || !fieldsOf(base)) return value ?? (isPointer ? null : 0);
    if (star && !value) return null;
    const values = fieldsOf(base).map(([, own, pointer, field]) => [field, filled(own, pointer, value?.[field])]);
    return Object.fromEntries(values);
  }

  const own = {
    callback: (name, called) => {
      const [, list] = new RegExp(`typedef void \\(\\*WGPU${name}Callback\\)\\(([^)]*)\\)`).exec(text);
      const types = declared(list).map(([, base, star]) => typeOf(base, star));
      return koffi.register(called, koffi.pointer(koffi.proto(null, "void", types)));
    },
    chained: (name, sType, fields) => {
      const type = `WGPU${name}`;
      return koffi.as(filled(type, "", { chain: { sType }, ...fields }), koffi.pointer(typeOf(type, "")));
    },
  };
  return new Proxy(own, { get(functions, name) {
    if (!functions[name]) {
      const [, result, list] = new RegExp(`(\\w+(?:\\s*\\*)?)\\s+wgpu${name}\\(([^)]*)\\)`).exec(text);
      const parameters = declared(list);
      const isGetter = /Get(Info|Limits)$/.test(name); // which fills and returns the object of its last parameter
      const types = parameters.map(([, base, star]) => typeOf(base, star));
      if (isGetter) types.push(koffi.inout(types.pop()));
      const called = loaded.func(`wgpu${name}`, result.endsWith("*") ? "void *" : typeOf(result, ""), types);
      functions[name] = (...given) => {
        const values = parameters.map(([, base, star], number) => filled(base, star, given[number]));
        const returned = called(...values);
        return isGetter ? values.at(-1) : returned;
      };
    }
    return functions[name];
  } });
}
