"""A spool worker process on the scripted backend: `python scripted_spool_worker.py DIR [lease seconds]`."""

from __future__ import annotations

import sys
from pathlib import Path

from scripted_backend import ScriptedBackend

from kernelskill.evaluation.spool_worker import serve

lease_s = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
serve(
    Path(sys.argv[1]),
    backend=ScriptedBackend(),
    poll_s=0.05,
    lease_s=lease_s,
    until_empty="--until-empty" in sys.argv,
    log=lambda text: print(text, flush=True),
)
