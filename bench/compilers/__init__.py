"""What real GPU compilers make of the kernels, on a machine without a GPU."""
