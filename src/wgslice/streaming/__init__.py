"""Slices of arrays that exceed GPU or host memory, block by block from any array-like to any other."""
