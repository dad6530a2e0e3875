"""Captured programs: calls recorded once, and replayed on other tensors without planning."""
