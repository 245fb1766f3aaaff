"""``python -m admiss`` is the command ``admiss``."""

import sys

from admiss.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
