"""Public test suites of other projects, run on tensors: `python3 run suites`."""
