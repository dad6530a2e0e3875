"""Test every kernel of an adapter against NumPy, measure its bandwidth, and report known driver issues."""
