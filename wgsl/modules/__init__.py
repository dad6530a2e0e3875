"""The kernels as any WebGPU implementation loads them: a complete module each, linked by `wgsl/link.py`."""
