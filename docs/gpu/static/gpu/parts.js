// What the page does with a device: are the bytes right, how fast are copies, are strategies well chosen.

import { Clock } from "./clock.js";
import { checked, Memory } from "./programs.js";

const WARM_MS = 200;

/** A device, and what is found on it. Every wait ends when the device is lost. */
export class Bench {
  constructor(device, programs, report, progress) {
    Object.assign(this, { device, programs, report, progress, kept: [] });
    const lost = device.lost.then(({ message }) => { throw new Error(`the device was lost: ${message || "no reason is given"}`); });
    lost.catch(() => {});
    this.until = (promise) => Promise.race([lost, promise]);
  }

  /** Throws if the device is lost. */
  async alive() { await this.until(new Promise((resolve) => setTimeout(resolve))); }

  /** Loads a program. Its pipelines are kept: WebGPU finds them again instead of compiling their equals. */
  async loaded(entry) {
    const program = await this.programs.load(this.device, entry);
    this.kept.push(program.pipelines);
    return program;
  }

  /** Runs every trial and every race, and adds a line for each kernel. */
  async right() {
    const { trials, races, repeats } = this.programs.index;
    const entries = [...trials, ...races];
    const memory = await this.until(Memory.allocated(this.device, entries));
    for (const [section, some, runs] of [["kernels", trials, 1], ["races", races, this.report.adapter.software ? 1 : repeats]]) {
      for (const entry of some) {
        const { failure, wrong } = await this.wrongIn(memory, entry, runs);
        this.count(section, entry, runs, wrong, failure);
        this.progress(1 / entries.length, `${entry.group}: ${entry.name}`);
      }
    }
    memory.destroy();
  }

  /** Returns how many runs of an entry wrote wrong bytes, and a description. */
  async wrongIn(memory, entry, repeats) {
    this.running = entry.name;
    const found = [];
    try {
      await this.until(checked(this.device, async () => {
        const bound = memory.bind(this.programs, await this.loaded(entry), entry);
        for (let repeat = 0; repeat < repeats; repeat += 1) found.push(await this.until(memory.digestOf(bound, entry)));
        const isWrong = found.some((each) => each !== entry.digest);
        for (let more = 0; isWrong && more < 2; more += 1) found.push(await this.until(memory.digestOf(bound, entry)));
      }));
    } catch (error) {
      await this.alive();
      return { wrong: repeats, failure: error.message };
    }
    const wrong = found.filter((each) => each !== entry.digest);
    const kinds = new Set(found).size;
    const again = kinds === 1 ? "the same in each run" : `of ${found.length} runs, ${wrong.length} are wrong, in ${new Set(wrong).size} ways`;
    return { wrong: Math.min(wrong.length, repeats), failure: wrong.length ? `wrong bytes, ${again}` : "" };
  }

  /** Adds runs of an entry to the lines of its kernels. */
  count(section, entry, runs, wrong, failure) {
    const lines = this.report[section];
    let line = lines.find(({ kernel }) => kernel === entry.group);
    if (!line) lines.push(line = { kernel: entry.group, trials: 0, wrong: 0, failure: "" });
    line.trials += runs;
    line.wrong += wrong;
    if (failure) line.failure ||= `${entry.name} (${entry.case}): ${failure}`;
  }

  /** Chooses the size of copies, and times each. */
  async fast() {
    this.began = performance.now();
    const { sizes, fixed, large_run_s } = this.programs.index;
    this.size = sizes.small;
    await this.allocate([...this.size.speeds, ...fixed]);
    const kernelCopy = this.size.speeds.find(({ group }) => group === "kernel copy");
    const warm = await this.bound(kernelCopy);
    for (const start = performance.now(); performance.now() - start < WARM_MS;) await this.until(this.clock.submitted(warm, 4));
    const [seconds] = await this.until(this.clock.seconds([warm]));
    if (seconds * (sizes.large.side / sizes.small.side) ** 2 < large_run_s) await this.allocateLarge(sizes, fixed);
    this.report.side = this.size.side;
    const copies = await this.timed(this.size.speeds, (entry, best_s) => {
      this.report.speeds.push({ name: entry.name, group: entry.group, nbytes: entry.nbytes, best_s });
      const [copy] = this.report.speeds;
      for (const each of this.report.speeds) each.share = (each.nbytes * copy.best_s) / (copy.nbytes * each.best_s);
    });
    if (!copies) return;
    await this.measureFixed(fixed);
    this.report.clock = this.clock.kind;
  }

  async allocate(entries) {
    this.memory?.destroy();
    this.memory = await this.until(Memory.allocated(this.device, entries));
    this.clock = await this.until(Clock.made(this.device, this.memory));
    await this.until(this.clock.choose(await this.bound(entries.find(({ group }) => group === "kernel copy"))));
  }

  async allocateLarge(sizes, fixed) {
    try {
      await this.allocate([...sizes.large.speeds, ...fixed]);
      this.size = sizes.large;
    } catch (error) {
      await this.alive();
      this.report.notes.push(`The device has no memory for copies of 64 MiB, smaller ones were timed: ${error.message}`);
      await this.allocate([...this.size.speeds, ...fixed]);
    }
  }

  async bound(entry) {
    this.running = entry.name;
    return this.memory.bind(this.programs, await this.until(this.loaded(entry)), entry);
  }

  isSpent() { return performance.now() - this.began > this.programs.index.budget_s * 1e3; }

  /** Checks and times entries; calls `found` with each and its seconds. Returns whether all were timed in time. */
  async timed(entries, found) {
    for (const [number, entry] of entries.entries()) {
      if (this.isSpent()) return this.leftOut(entries.length - number, "copies");
      try {
        await this.until(checked(this.device, async () => {
          const bound = await this.bound(entry);
          if (await this.until(this.memory.digestOf(bound, entry)) !== entry.digest) throw new Error("wrong bytes");
          const [seconds] = await this.until(this.clock.seconds([bound]));
          found(entry, seconds);
        }));
      } catch (error) {
        await this.alive();
        this.report.failures.push({ name: entry.name, failure: error.message });
      }
      this.progress(1 / entries.length, `${entry.group}: ${entry.name}`);
    }
    return true;
  }

  leftOut(count, what) {
    this.report.notes.push(`${count} ${what} were left out after ${this.programs.index.budget_s} seconds.`);
    return false;
  }

  /** Derives the cost parameters of any copy, named as those of `wgslice tune`. */
  async measureFixed(fixed) {
    const [dispatch_s, one_s, many_s] = await this.until(this.clock.seconds(
      await Promise.all(fixed.map((entry) => this.bound(entry)))));
    const bandwidth = (group) => {
      const { nbytes, best_s } = this.report.speeds.find((each) => each.group === group);
      return nbytes / best_s;
    };
    this.report.constants = {
      submission_s: this.clock.idle_ms / 1e3,
      dispatch_s,
      copy_s: Math.max((many_s - one_s) / (this.programs.index.many_copies - 1), 1e-9),
      copy_bytes_per_s: bandwidth("buffer copy"),
      shader_bytes_per_s: bandwidth("kernel copy"),
    };
  }

  /** Times every strategy of copies, and says which one the shipped cost model takes. */
  async chosen() {
    const { choices } = this.size;
    for (const [number, choice] of choices.entries()) {
      if (this.isSpent()) return this.leftOut(choices.length - number, "copies by every strategy");
      const names = Object.keys(choice.ways);
      try {
        await this.until(checked(this.device, async () => {
          const bound = [];
          for (const name of names) {
            const entry = choice.ways[name];
            bound.push(await this.bound(entry));
            const found = await this.until(this.memory.digestOf(bound.at(-1), entry));
            if (found !== entry.digest) throw new Error(`wrong bytes by ${name}`);
          }
          const seconds = await this.until(this.clock.seconds(bound));
          const ways_s = Object.fromEntries(names.map((name, index) => [name, seconds[index]]));
          this.report.choices.push({ name: choice.name, nbytes: choice.nbytes, ways_s, shipped: choice.shipped });
        }));
      } catch (error) {
        await this.alive();
        this.report.failures.push({ name: choice.name, failure: error.message });
      }
      this.progress(1 / choices.length, choice.name);
    }
    return true;
  }
}
