"""The host side of `wgsl/`: modules, uniform blocks and constants."""
