"""Tensors: strided views of GPU buffers, their creation, indexing, assignment and exchange."""
