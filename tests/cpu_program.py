"""Kernels that run on the CPU: the compiled text of a whole program, and what it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path


def printed(folder: Path, text: str, headers: Path) -> bytes:
    """Compile a C++ program in a folder, run it there and return what it prints.

    Args:
        folder: For its files.
        text: The whole program.
        headers: Folder of what it includes.
    """
    (folder / "all.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", f"-I{headers}", "all.cpp", "-o", "all"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([folder / "all"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-200:]
    return done.stdout
