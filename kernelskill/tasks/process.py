"""TestProcess: the parent's side of the process that holds a test.py. Never runs the user's code itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelskill.errors import TaskError, WorkerDied
from kernelskill.isolation.child import Child, ChildKilled, ChildTimeout, Limits, clean_environment
from kernelskill.isolation.environment import python_path
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.task import Signature
from kernelskill.tasks.bundle import Bundle, read_bundle
from kernelskill.tasks.description import BaselineTiming, Configuration, TestDescription
from kernelskill.tasks.formula import Node
from kernelskill.tasks.testsource import TestSource, read_test_source

DEFAULT_TIMEOUT_S = 120.0
HARD_MARGIN_S = 5.0
"""After its time limit the child has this long to say where it hung; then it is killed."""


class TestProcess:
    """A child process that holds one test.py. Use as a context manager."""

    __test__ = False

    def __init__(self, tests: TestSource, start: Callable[[], Child], timeout_s: float) -> None:
        self.tests = tests
        self._start = start
        self._child = start()
        self._timeout_s = timeout_s
        self._doing = "loading test.py"

    @classmethod
    def start(
        cls, tests: TestSource, *, timeout_s: float = DEFAULT_TIMEOUT_S, gpu: bool = False
    ) -> TestProcess:
        """Start the process and execute the test file in it.

        Args:
            tests: Must still be what is on disk.
            timeout_s: For every single call of the user's code.
            gpu: Whether `baseline` will be asked for; a process with a GPU has no memory limit.

        Raises:
            TaskError: The file changed since it was read, is no Python, raises or hangs.
        """
        if read_test_source(tests.path).digest != tests.digest:
            raise TaskError(
                f"{tests.main} or a file beside it changed since the task was loaded",
                remedy="start again to use the new one",
            )
        limits = Limits(wall_s=timeout_s, address_bytes=None if gpu else machine_bytes())
        command = [sys.executable, "-P", "-m", "kernelskill.tasks.child"]

        def start() -> Child:
            return Child.start(command, cwd=Path(tests.folder), limits=limits, env=user_environment())

        process = cls(tests, start, timeout_s)
        try:
            process._load()
        except BaseException:
            process.close()
            raise
        return process

    def describe(self) -> TestDescription:
        """Return what the file declares.

        Raises:
            TaskError: Something that it declares cannot be used.
        """
        return TestDescription.model_validate(self._ask({"do": "describe"}, "reading its constants"))

    def bundle(self, case: int, seed: int, folder: Path, signature: Signature) -> Bundle:
        """Return inputs and expected values of a case at a seed, as files under `folder`.

        A finished bundle of the same tests, signature, case and seed is used again.

        Raises:
            TaskError: make_inputs or reference fails, or what they return does not fit the signature.
        """
        key = bundle_key(self.tests, signature, case, seed)
        place = folder.resolve() / key[:32]
        found = read_bundle(place)
        if found is not None and found.key == key:
            return found
        message = {
            "do": "bundle",
            "case": case,
            "seed": seed,
            "signature": signature.model_dump(mode="json"),
            "key": key,
            "folder": str(place),
        }
        return Bundle.model_validate(self._ask(message, f"make_inputs and reference in CASES[{case}]"))

    def check(self, bundle: Bundle, outputs: Mapping[str, Path]) -> str:
        """Ask the user's own `check` about outputs, each a file of raw bytes.

        Returns:
            Why they are wrong; empty where they are right.

        Raises:
            TaskError: check raises something else than AssertionError, or answers nonsense.
        """
        message = {
            "do": "check",
            "folder": bundle.folder,
            "outputs": {name: str(path) for name, path in outputs.items()},
        }
        return str(self._ask(message, f"check in CASES[{bundle.case}]"))

    def launch(self, case: int) -> Configuration:
        """Return the launch configuration of a bare kernel in a case.

        Raises:
            TaskError: launch fails or returns no configuration.
        """
        return Configuration.model_validate(self._ask({"do": "launch", "case": case}, "launch"))

    def trace_launch(self, case: int, parameters: list[str]) -> list[Node] | None:
        """Return launch's sizes as formulas in the launcher's integers, or None where they are none.

        Raises:
            TaskError: launch fails.
        """
        answer = self._ask({"do": "trace", "case": case, "parameters": parameters}, "launch")
        return [_tuples(node) for node in answer] if answer is not None else None

    def ready_baseline(self, case: int, seed: int) -> None:
        """Import what the user's `baseline` needs and make its inputs, before the GPU is held for it.

        Raises:
            TaskError: The inputs cannot be made, or the library is missing.
        """
        message = {"do": "ready_baseline", "case": case, "seed": seed}
        self._ask(message, f"baseline in CASES[{case}]")

    def baseline(self, case: int, seed: int) -> BaselineTiming:
        """Time the user's `baseline` on this process's GPU with events.

        Raises:
            TaskError: It fails, or neither CuPy nor PyTorch with a GPU can be used.
        """
        message = {"do": "baseline", "case": case, "seed": seed}
        return BaselineTiming.model_validate(self._ask(message, f"baseline in CASES[{case}]"))

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._child.close()

    def __enter__(self) -> TestProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _load(self) -> None:
        self._ask({"do": "open", "path": str(self.tests.path)}, "loading test.py")

    def _ask(self, message: dict[str, Any], doing: str) -> Any:
        message["limit_s"] = self._timeout_s
        try:
            try:
                answer = self._child.call(message, timeout_s=self._timeout_s + HARD_MARGIN_S)
            except ChildKilled:
                answer = self._call_again(message)
        except ChildTimeout:
            raise TaskError(
                f"{self.tests.main}: {doing} did not finish within {self._timeout_s:g} s",
                remedy="make the cases smaller or the reference faster",
            ) from None
        except WorkerDied as error:
            raise TaskError(
                f"{self.tests.main}: the process died while {doing}: {_last_line(error.message)}",
                remedy="if memory ran out, make the cases smaller",
            ) from None
        if "error" not in answer:
            return answer["value"]
        fact, remedy = answer["error"]["fact"], answer["error"]["remedy"]
        raise TaskError(fact if self.tests.main in fact else f"{self.tests.main}: {fact}", remedy=remedy)

    def _call_again(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask a new process once: the first was killed from outside, which says nothing about the test."""
        self._child.close()
        self._child = self._start()
        limit_s = self._timeout_s + HARD_MARGIN_S
        if message["do"] != "open":
            load = {"do": "open", "path": str(self.tests.path), "limit_s": self._timeout_s}
            loaded = self._child.call(load, timeout_s=limit_s)
            if "error" in loaded:
                return loaded
        return self._child.call(message, timeout_s=limit_s)


def bundle_key(tests: TestSource, signature: Signature, case: int, seed: int) -> str:
    """Return the content key of a bundle."""
    return sha256_text(canonical_json([tests.digest, signature.content_digest(), case, str(seed), 1]))


def user_environment() -> dict[str, str]:
    """The user's own Python packages stay reachable; nothing else of the environment does."""
    environment = clean_environment()
    kept = ("VIRTUAL_ENV", "OMP_NUM_THREADS", "XDG_CACHE_HOME")
    environment |= {name: os.environ[name] for name in kept if name in os.environ}
    return environment | {
        "HOME": str(Path.home()),
        "PYTHONPATH": python_path(),
        "TMPDIR": tempfile.gettempdir(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def machine_bytes() -> int:
    """Return the memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _tuples(node: list[Any]) -> Node:
    return tuple(_tuples(part) if isinstance(part, list) else part for part in node)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
