"""Functions that move elements as NumPy's do: views where that can be, else one submission."""
