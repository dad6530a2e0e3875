// Times programs: many runs in one submission, by the GPU's timestamps or else by the host's clock.

import { checked } from "./programs.js";

const [MAP_READ, COPY_SRC, COPY_DST, QUERY_RESOLVE, READ_MODE] = [0x1, 0x4, 0x8, 0x200, 0x1];
const MAX_RUNS = 1000;
const ROUNDS = 3;
const HOPELESS = 5; // times the least: programs that take longer are timed once
const RESOLUTIONS = 100; // of the host's clock that a submission takes at least
const MIN_MS = 30; // that a submission takes at least
const TOUCH = `
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> target_words: array<u32>;
@compute @workgroup_size(1) fn touch() { target_words[0] = source[0]; }
`;

/** Waits for submissions between two small dispatches, which write what the timed programs write. */
export class Clock {
  static async made(device, memory) {
    const clock = new Clock();
    const compute = { module: device.createShaderModule({ code: TOUCH }), entryPoint: "touch" };
    const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute });
    const entries = [memory.source, memory.target].map((buffer, binding) => ({ binding, resource: { buffer } }));
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    Object.assign(clock, { device, pipeline, group, kind: "host", queries: null });
    clock.least_ms = Math.max(MIN_MS, RESOLUTIONS * resolution());
    if (device.features.has("timestamp-query")) await clock.prepareTimestamps();
    clock.idle_ms = Infinity;
    for (let round = 0; round < 5; round += 1) {
      clock.idle_ms = Math.min(clock.idle_ms, (await clock.submitted(null, 0)).host);
    }
    return clock;
  }

  async prepareTimestamps() {
    const { device } = this;
    await checked(device, () => {
      this.queries = device.createQuerySet({ type: "timestamp", count: 2 });
      this.resolved = device.createBuffer({ size: 16, usage: QUERY_RESOLVE | COPY_SRC });
      this.read = device.createBuffer({ size: 16, usage: MAP_READ | COPY_DST });
    }).catch(() => { this.queries = null; });
  }

  /** Milliseconds of one submission with some runs of a program, by both clocks. */
  async submitted(bound, runs) {
    const { device, queries } = this;
    const encoder = device.createCommandEncoder();
    this.touch(encoder, 0);
    for (let run = 0; run < runs; run += 1) bound.run(encoder);
    this.touch(encoder, 1);
    if (queries) {
      encoder.resolveQuerySet(queries, 0, 2, this.resolved, 0);
      encoder.copyBufferToBuffer(this.resolved, 0, this.read, 0, 16);
    }
    const commands = encoder.finish();
    const start = performance.now();
    device.queue.submit([commands]);
    await device.queue.onSubmittedWorkDone();
    const host = performance.now() - start;
    if (!queries) return { host };
    await this.read.mapAsync(READ_MODE);
    const [began, ended] = new BigUint64Array(this.read.getMappedRange().slice(0));
    this.read.unmap();
    return { host, timestamps: Number(ended - began) / 1e6 };
  }

  touch(encoder, index) {
    const writes = this.queries && { querySet: this.queries, endOfPassWriteIndex: index };
    const pass = encoder.beginComputePass(writes ? { timestampWrites: writes } : {});
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, this.group);
    pass.dispatchWorkgroups(1);
    pass.end();
  }

  /** Seconds of one run, of the least of some submissions of each program, which take turns. */
  async seconds(programs) {
    const [least, runs] = [programs.map(() => Infinity), []];
    for (const bound of programs) {
      const first = Math.max((await this.submitted(bound, 1)).host - this.idle_ms, 0.001);
      runs.push(Math.min(Math.max(Math.ceil(this.least_ms / first), 1), MAX_RUNS));
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const best = Math.min(...least);
      for (const [number, bound] of programs.entries()) {
        if (round && least[number] > HOPELESS * best) continue;
        least[number] = Math.min(least[number], await this.perRun(bound, runs[number]));
      }
    }
    return least.map((ms) => ms / 1e3);
  }

  /** Uses timestamps from now on if they agree with the host's clock. */
  async choose(bound) {
    if (!this.queries) return;
    const runs = Math.ceil(this.least_ms / Math.max((await this.submitted(bound, 1)).host - this.idle_ms, 0.1));
    let agreed = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const { host, timestamps } = await this.submitted(bound, runs);
      agreed += timestamps > 0.5 * (host - this.idle_ms) && timestamps < 1.05 * host + 0.2;
    }
    if (agreed === ROUNDS) this.kind = "timestamps";
  }

  /** Milliseconds of one run. */
  async perRun(bound, runs) {
    const taken = await this.submitted(bound, runs);
    return (this.kind === "timestamps" ? taken.timestamps : Math.max(taken.host - this.idle_ms, 1e-6)) / runs;
  }
}

/** Milliseconds between two values of the host's clock. */
function resolution() {
  let least = Infinity;
  for (let number = 0; number < 10; number += 1) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    least = Math.min(least, now - start);
  }
  return least;
}
