"""`python -m tritensor.run script.py`: runs a script whose imports say torch. The work is done in tools/run_script.py."""

import sys

from tritensor.tools.run_script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
