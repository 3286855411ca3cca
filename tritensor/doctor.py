"""`python -m tritensor.doctor`: is the GPU working? The work is done in tools/doctor.py."""

import sys

from tritensor.tools.doctor import main

if __name__ == "__main__":
    sys.exit(main())
