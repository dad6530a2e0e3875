"""The host side of `wgsl/`: uniform blocks, constants, and for each kernel a twin in NumPy."""
