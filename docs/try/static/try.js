// Slices a picture by saved programs: the chosen one reads a window at the offsets that two sliders have.

import { copyFrame, load } from "./programs/program.js";

const [WINDOW_HEIGHT, WINDOW_WIDTH] = [240, 320]; // as programs.py has them
const RUNS = 100; // timed in one submission
const NO_WEBGPU =
  "This page needs WebGPU, which this browser does not offer here; recent versions of Chrome, Edge, Firefox and " +
  "Safari do on most systems. The screenshot below shows what you would see.";
const RELOAD = "Reload the page. If it finds no GPU then, restart the browser, which stops offering one after some crashes.";
const NO_ADAPTER =
  `This browser has WebGPU, but offers no GPU to this page. ${RELOAD} If it never found one, its settings or the driver ` +
  "disable WebGPU. The screenshot below shows what you would see.";
const programs = new URL("programs/", import.meta.url);
const element = (id) => document.getElementById(id);
const [row, column, picture, output, webcam] = ["row", "column", "picture", "output", "webcam"].map(element);
const video = document.createElement("video");

/** Shows a message, or none. That of a lost GPU stays: what fails after it fails because of it. */
function report(message) {
  if (element("try").inert) return;
  element("status").textContent = message;
  element("status").hidden = !message;
}

function fail(error) {
  report(`This page fails here: ${error.message}`);
}

/** A program that is bound to the picture, to offsets of its own, and to the canvas of the output. */
class Operation {
  constructor(program, texture, context) {
    const [height, width] = program.inputs.output.shape;
    const [input, offsets, result] = ["picture", "offsets", "output"].map((name) => program.createBuffer(name));
    const shown = program.bind({ picture: texture, offsets, output: () => context.getCurrentTexture() });
    const timed = program.bind({ picture: input, offsets, output: result });
    Object.assign(this, { device: program.device, width, height, offsets, shown, timed });
  }

  run() {
    const offsets = new Int32Array([row.valueAsNumber, column.valueAsNumber, 0]);
    this.device.queue.writeBuffer(this.offsets, 0, offsets);
    this.shown.run();
  }

  /** Returns the milliseconds of a run without textures, less the latency of its submission. */
  async time() {
    const wait = async (runs) => {
      const encoder = this.device.createCommandEncoder();
      for (let run = 0; run < runs; run += 1) this.timed.run(encoder);
      const commands = encoder.finish();
      const start = performance.now();
      this.device.queue.submit([commands]);
      await this.device.queue.onSubmittedWorkDone();
      return performance.now() - start;
    };
    await wait(1); // the first run may take longer
    const latency = await wait(1);
    return Math.max(0, await wait(1 + RUNS) - latency) / RUNS;
  }
}

/** Connects the elements of the page to a device. */
class Page {
  constructor(device, gpu) {
    const context = output.getContext("webgpu");
    context.configure({ device, format: "rgba8unorm", usage: GPUTextureUsage.COPY_DST });
    const drawing = picture.getContext("2d", { alpha: false });
    Object.assign(this, { device, gpu, context, drawing, texture: copyFrame(device, picture), operation: null });
    for (const slider of [row, column]) slider.addEventListener("input", () => this.move());
    element("file").addEventListener("change", ({ target }) => target.files[0] && this.open(target.files[0]));
    webcam.addEventListener("click", () => this.toggleWebcam());
    this.drag(picture.parentElement);
    this.move();
  }

  /** Adds a radio button for an operation of operations.json, and returns it. */
  add(listed) {
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "operation" });
    const code = Object.assign(document.createElement("code"), { textContent: listed.numpy });
    const label = document.createElement("label");
    label.append(radio, " ", code);
    element("operations").append(label);
    radio.addEventListener("change", () => this.choose(listed, radio).catch(fail));
    return radio;
  }

  async load(name) {
    return new Operation(await load(this.device, new URL(name, programs)), this.texture, this.context);
  }

  async choose(listed, radio) {
    element("time").textContent = "being timed";
    const operation = await (listed.loaded ??= this.load(listed.name));
    if (!radio.checked) return; // another one was chosen meanwhile
    this.operation = operation;
    [output.width, output.height] = [operation.width, operation.height];
    operation.run();
    element("size").textContent = `${output.width} x ${output.height}`;
    element("python").textContent = listed.python;
    element("plan").textContent = listed.plan;
    const milliseconds = await operation.time();
    if (radio.checked) element("time").textContent = `${milliseconds.toPrecision(3)} ms per run on ${this.gpu}`;
  }

  /** Draws a picture or a frame so that it covers the canvas, and runs. */
  draw(source, width, height) {
    const scale = Math.max(picture.width / width, picture.height / height);
    const size = [width * scale, height * scale];
    const start = [(picture.width - size[0]) / 2, (picture.height - size[1]) / 2];
    this.drawing.drawImage(source, ...start, ...size);
    copyFrame(this.device, picture, [picture.width, picture.height], this.texture);
    this.operation?.run();
  }

  /** Shows the window where the program clamps it to, and runs. */
  move() {
    const [top, left] = [row.valueAsNumber, column.valueAsNumber];
    const y = Math.min(Math.max(top, 0), picture.height - WINDOW_HEIGHT);
    const x = Math.min(Math.max(left, 0), picture.width - WINDOW_WIDTH);
    const inPercent = (length, whole) => `${(100 * length) / whole}%`;
    Object.assign(element("window").style, {
      top: inPercent(y, picture.height), height: inPercent(WINDOW_HEIGHT, picture.height),
      left: inPercent(x, picture.width), width: inPercent(WINDOW_WIDTH, picture.width),
    });
    const clamped = y === top && x === left ? "" : ", clamped";
    const window = `picture[${y}:${y + WINDOW_HEIGHT}, ${x}:${x + WINDOW_WIDTH}]`;
    element("offsets").textContent = `offsets (${top}, ${left}, 0)${clamped}: window = ${window}`;
    this.operation?.run();
  }

  /** Lets the mouse, a finger or a pen move the window. */
  drag(stage) {
    let grabbed = [0, 0];
    const place = ({ clientX, clientY }) => {
      const scale = picture.width / picture.clientWidth;
      return [clientX * scale, clientY * scale];
    };
    stage.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      grabbed = [x - column.valueAsNumber, y - row.valueAsNumber];
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!stage.hasPointerCapture(event.pointerId)) return;
      const [x, y] = place(event);
      [column.value, row.value] = [x - grabbed[0], y - grabbed[1]]; // rounded, and within their ranges
      this.move();
    });
  }

  async open(file) {
    this.stopWebcam();
    try {
      const image = await createImageBitmap(file);
      this.draw(image, image.width, image.height);
      report("");
    } catch (error) {
      report(`This browser reads no picture from ${file.name}: ${error.message}`);
    }
  }

  async toggleWebcam() {
    if (video.srcObject) return this.stopWebcam();
    try {
      const { width, height } = picture;
      video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { width, height } });
      await video.play();
      webcam.setAttribute("aria-pressed", "true");
      report("");
    } catch (error) {
      this.stopWebcam();
      return report(`The webcam cannot be used: ${error.message}`);
    }
    const next = () => {
      if (element("try").inert) this.stopWebcam();
      if (!video.srcObject) return;
      this.draw(video, video.videoWidth, video.videoHeight);
      requestAnimationFrame(next);
    };
    next();
  }

  stopWebcam() {
    for (const track of video.srcObject?.getTracks() ?? []) track.stop();
    video.srcObject = null;
    webcam.setAttribute("aria-pressed", "false");
  }
}

async function main() {
  if (!navigator.gpu) return report(NO_WEBGPU);
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) return report(NO_ADAPTER);
  const device = await adapter.requestDevice();
  device.lost.then(({ message }) => {
    report(`The GPU was lost: ${message} ${RELOAD}`);
    element("try").inert = true;
  });
  device.addEventListener("uncapturederror", ({ error }) => report(`WebGPU refused a command: ${error.message}`));
  const { vendor, architecture } = adapter.info;
  const page = new Page(device, `${vendor} ${architecture}`.trim() || "this GPU");
  const image = new Image();
  image.src = new URL("picture.svg", import.meta.url);
  await image.decode();
  page.draw(image, image.width, image.height);
  const operations = await (await fetch(new URL("operations.json", programs))).json();
  const [first] = operations.map((operation) => page.add(operation));
  first.click();
  report("");
  element("try").hidden = false;
  document.querySelector("img[src*=screenshot]").parentElement.hidden = true;
}

main().catch(fail);
