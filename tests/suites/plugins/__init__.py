"""A pytest plugin for each suite, which puts tensors where the suite has arrays."""
