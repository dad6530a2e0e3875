"""Slices of arrays larger than a GPU, and than memory: block by block, from any array-like to any other."""
