"""Whether an adapter does what is asked of it: every kernel against NumPy, speeds, known quirks, a report."""
