"""The command line; no logic."""

import os

# The preference model's matrices have some hundred rows: several threads of a BLAS wait for each other longer
# than they compute, most of all on a busy machine. Processes that run a user's test.py choose for themselves.
for _library in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
