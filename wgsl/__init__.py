"""The kernels: one plain WGSL file each."""
