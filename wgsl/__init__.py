"""The kernels, one plain WGSL file each, and the files in `shared` that several kernels include."""
