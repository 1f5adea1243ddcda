"""Run the command as ``python -m shufflebounds``."""

import sys

from shufflebounds.cli import main

if __name__ == "__main__":
    sys.exit(main())
