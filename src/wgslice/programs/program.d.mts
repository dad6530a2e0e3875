// Types of program.mjs; those of WebGPU are in TypeScript's lib "dom" or in @webgpu/types.

export interface TensorDescription {
  buffer: number;
  dtype: string;
  itemsize: number; // bytes
  shape: number[];
  strides: number[]; // elements
  offset: number; // bytes, of the element at index 0
}

export interface Input extends TensorDescription {
  name: string;
  alignment: number;
  written: boolean;
}

export type Elements =
  | Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array
  | Float32Array | Float64Array | BigInt64Array | BigUint64Array;
/** Index of an output; name of an input; key of a dict in the result; path of keys and indices in the result. */
export type Which = number | string | (string | number)[];
export type Source = string | URL | ((file: string) => Promise<ArrayBuffer | Uint8Array>);
export type Binding = GPUBuffer | { buffer: GPUBuffer; offset?: number } | GPUTexture | (() => GPUTexture);

/** Loads a program from the URL of its folder, or by a function that reads its files. */
export function load(device: GPUDevice, source: Source): Promise<Program>;

export class Program {
  readonly device: GPUDevice;
  readonly inputs: Record<string, Input>;
  readonly outputs: TensorDescription[];
  /** Makes a zeroed buffer for an input, or one with the elements of an array of its dtype, in row-major order. */
  createBuffer(name: string, array?: ArrayBufferView | ArrayBuffer): GPUBuffer;
  /** Binds each input. Textures have the input's width, height and bytes per texel. */
  bind(given: Record<string, Binding>): Bound;
  /** Finds what `read` reads. */
  tensor(which: Which): TensorDescription;
}

export interface Bound {
  /** Records one run into an encoder with no open pass, or submits it. */
  run(encoder?: GPUCommandEncoder): void;
  /** Reads an output, the first by default, or an input, in row-major order; bytes for dtypes without an array type. */
  read(which?: Which): Promise<Elements>;
}

/** Copies the frame that a canvas, an image or a video shows into a texture of rgba8 texels, new by default. */
export function copyFrame(
  device: GPUDevice,
  source: GPUCopyExternalImageSource,
  size?: [number, number],
  texture?: GPUTexture | null,
): GPUTexture;
