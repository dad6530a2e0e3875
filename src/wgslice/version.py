"""Which wgslice this is."""

VERSION = "0.1.0"
