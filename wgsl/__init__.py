"""The kernels: a plain WGSL file each, and in `shared` what several of them have."""
