"""NumPy's functions on tensors: those that move elements run, all others are refused by name."""
