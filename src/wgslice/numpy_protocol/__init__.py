"""NumPy's functions that move elements, the layout rules behind them, and NumPy's table of functions."""
