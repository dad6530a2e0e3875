"""DirectML's operators and ours, as functions, and as descriptors to compile once and record."""
