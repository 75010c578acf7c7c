"""python -m boundby."""

import sys

from boundby.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
