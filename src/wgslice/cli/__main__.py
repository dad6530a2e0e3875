"""`python -m wgslice.cli`."""

import sys

from wgslice.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
