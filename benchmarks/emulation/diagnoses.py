"""Diagnose kernels with one known fault each, and count how often the first limit named is a right one.

python benchmarks/emulation/diagnoses.py [--device emulated] [--only NAME ...] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from pathlib import Path

from kernelskill.config import RunConfig
from kernelskill.errors import KernelSkillError
from kernelskill.session.profiling import profile_kernel

FOLDER = Path(__file__).with_name("patterns")
BAR = 12
"""First diagnoses that have to be right on the emulated device."""


def main() -> int:
    """Diagnose the patterns and print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    allowed = tomllib.loads((FOLDER / "allowed_diagnoses.toml").read_text())
    names = [name for name in allowed if not given.only or name in given.only]
    rows = [diagnosed(name, allowed[name], given.device) for name in names]
    right = sum(bool(row["right"]) for row in rows)
    print(f"{right} of {len(rows)} first diagnoses are right")
    if given.out is not None:
        given.out.write_text(json.dumps({"device": given.device, "patterns": rows}, indent=1) + "\n")
    return 0 if right >= min(BAR, len(rows)) else 1


def diagnosed(name: str, allowed: dict[str, list[str]], device: str) -> dict[str, object]:
    """Return what was said about one pattern and whether that is right."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch:
        folder = Path(scratch)
        tests = folder / "test.py"
        tests.write_text(f'KERNEL = "run_{name}"\n' + (FOLDER / "body.py").read_text())
        try:
            found = profile_kernel(FOLDER / "patterns.cu", tests, RunConfig(device=device), folder)
        except KernelSkillError as error:
            print(f"  x {name}: {error.message}", flush=True)
            return {"name": name, "right": False, "error": error.message}
    kinds = [limit.kind.value for limit in found.bottlenecks]
    first = kinds[0] if kinds else "nothing"
    right = first in allowed["first"] and set(allowed.get("must", [])) <= set(kinds)
    print(f"  {'+' if right else '-'} {name}: {', '.join(kinds[:4]) or 'nothing'}", flush=True)
    return {"name": name, "right": right, "said": kinds, "conditions": found.profile.conditions.model_dump()}


if __name__ == "__main__":
    sys.exit(main())
