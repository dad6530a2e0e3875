"""`python -m wgslice.cli`."""

import sys

from wgslice.cli import main

if __name__ == "__main__":
    sys.exit(main())
