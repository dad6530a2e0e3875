"""The command line `wgslice`: a room for each command, which adds itself to the parser."""

from wgslice.cli.commands import main

__all__ = ["main"]
