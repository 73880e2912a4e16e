"""Read a file with a PyTorch module in a process of its own. Never runs the user's code itself."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernelskill.errors import TaskError, ToolchainError
from kernelskill.isolation.child import Limits, run_child
from kernelskill.tasks.process import machine_bytes, user_environment
from kernelskill.tasks.sources import require_file
from kernelskill.tasks.torch_facts import ModuleFacts

TIME_LIMIT_S = 300.0


def read_problem(path: Path, *, timeout_s: float = TIME_LIMIT_S) -> ModuleFacts:
    """Return what the file holds.

    Args:
        path: Defines Model, get_inputs and, where Model takes anything, get_init_inputs.
        timeout_s: Wall time for everything; PyTorch takes a few seconds to start.

    Raises:
        TaskError: There is no such file, it fails, or it holds what no launcher can be given.
        ToolchainError: PyTorch is not installed.
    """
    require_file(path, "problem")
    if importlib.util.find_spec("torch") is None:
        raise ToolchainError(
            "a PyTorch module cannot be imported: PyTorch is not installed",
            remedy="pip install 'kernelskill[torch]'",
        )
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch:
        answer = Path(scratch) / "answer.json"
        file = path.resolve()
        done = run_child(
            [sys.executable, "-P", "-m", "kernelskill.tasks.torch_child", str(file), str(answer)],
            limits=Limits(wall_s=timeout_s, address_bytes=machine_bytes()),
            cwd=file.parent,
            env=user_environment(),
        )
        if done.timed_out:
            raise TaskError(
                f"{path.name} did not finish within {timeout_s:g} s", remedy="make its sizes smaller"
            )
        if not answer.is_file():
            lines = done.stderr.strip().splitlines()
            raise TaskError(
                f"{path.name}: the process ended with {done.returncode}: {lines[-1] if lines else 'no message'}",
                remedy="it must not end the program; if memory ran out, make its sizes smaller",
            )
        document: dict[str, Any] = json.loads(answer.read_text())
    if "error" in document:
        fact, remedy = document["error"]["fact"], document["error"]["remedy"]
        raise TaskError(fact if path.name in fact else f"{path.name}: {fact}", remedy=remedy)
    return ModuleFacts.model_validate(document["facts"])
