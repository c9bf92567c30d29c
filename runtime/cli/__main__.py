"""`python -m recallscope.runtime.cli`: the command line without its console script."""

import sys

from recallscope.runtime.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
