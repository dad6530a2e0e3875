"""The kernels: in a checkout their sources and the linker, in an installed package a complete module each."""
