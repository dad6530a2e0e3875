"""The benchmark: real slices, each verified, on wgslice and its rivals side by side. `python3 run bench`."""
