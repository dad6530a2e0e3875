"""The host side of `wgsl/`: modules, uniform blocks, constants, and for each kernel a twin in NumPy."""
