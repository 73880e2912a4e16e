"""The test process: holds one test.py and answers the parent. The user's code runs here and nowhere else.

Started as `python -P -m kernelskill.tasks.child`; speaks through `isolation.channel`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelskill.errors import TaskError
from kernelskill.isolation.channel import serve
from kernelskill.schema.task import Signature
from kernelskill.tasks.bundle import read_bundle
from kernelskill.tasks.bundle_writer import write_bundle
from kernelskill.tasks.declarations import configuration_of
from kernelskill.tasks.gpu_baseline import ready_baseline, time_baseline
from kernelskill.tasks.symbolic import require_function, trace_launch
from kernelskill.tasks.testfile import TestFile

PRINTED_CHARACTERS = 4000

Message = dict[str, Any]


class TimeLimit(BaseException):
    """The user's code used up its time; no `except Exception` of theirs may hold it."""


class TestChild:
    """Answers each message with a value, or with what went wrong and where."""

    __test__ = False

    def __init__(self) -> None:
        self._file: TestFile | None = None
        self._doing = "loading test.py"
        self._ready: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._operations: dict[str, Callable[[Message], Any]] = {
            "open": self._open,
            "describe": lambda message: self._test.describe().model_dump(mode="json"),
            "bundle": self._bundle,
            "check": self._check,
            "launch": lambda message: configuration_of(self._test.launch(message["case"])).model_dump(),
            "trace": self._trace,
            "ready_baseline": self._ready_baseline,
            "baseline": self._baseline,
        }

    def handle(self, message: Message) -> Message:
        """Carry out one message under its time limit."""
        printed = io.StringIO()
        try:
            with _captured(printed), _time_limit(message["limit_s"]):
                value = self._operations[message["do"]](message)
            return {"value": value, "printed": printed.getvalue()[-PRINTED_CHARACTERS:]}
        except TaskError as error:
            answer = {"fact": error.message, "remedy": error.remedy}
        except BaseException as error:  # noqa: BLE001 - the border of the process: anything may come out of a test.py
            answer = self._explain(error, message)
        return {"error": answer, "printed": printed.getvalue()[-PRINTED_CHARACTERS:]}

    @property
    def _test(self) -> TestFile:
        if self._file is None:
            raise TaskError("no test.py is loaded")
        return self._file

    def _open(self, message: Message) -> None:
        path = Path(message["path"])
        self._doing, self._folder = f"loading {path.name}", path.parent
        sys.path.insert(0, str(path.parent))
        os.chdir(path.parent)
        self._file = TestFile(path)

    def _bundle(self, message: Message) -> Message:
        signature = Signature.model_validate(message["signature"])
        bundle = write_bundle(
            self._test, signature, message["case"], message["seed"], message["key"], Path(message["folder"])
        )
        return bundle.model_dump(mode="json")

    def _check(self, message: Message) -> str:
        bundle = read_bundle(Path(message["folder"]))
        if bundle is None:
            raise TaskError(f"the bundle {message['folder']!r} is gone")
        outputs = {name: bundle.load_output(name, Path(path)) for name, path in message["outputs"].items()}
        expected = {name: bundle.load(output.values) for name, output in bundle.expected.items()}
        return self._test.check(bundle.case, outputs, expected)

    def _trace(self, message: Message) -> Any:
        names = self._test.names
        arguments = self._test.arguments(message["case"])
        return trace_launch(require_function(names, "launch"), message["parameters"], arguments, names)

    def _ready_baseline(self, message: Message) -> None:
        case, seed = message["case"], message["seed"]
        self._ready = {(case, seed): ready_baseline(self._test, case, seed)}

    def _baseline(self, message: Message) -> Message:
        case, seed = message["case"], message["seed"]
        given = self._ready.pop((case, seed), None) or ready_baseline(self._test, case, seed)
        return time_baseline(self._test, case, given).model_dump(mode="json")

    def _explain(self, error: BaseException, message: Message) -> dict[str, str]:
        """Say in one line what came out of the user's code, with its own last line."""
        doing = self._file.doing if self._file is not None else self._doing
        where, code = self._place(error)
        if isinstance(error, TimeLimit):
            fact = f"{doing} did not finish within {message['limit_s']:g} s"
        elif isinstance(error, SystemExit):
            fact = f"{doing} left the program (SystemExit: {error.code})"
        elif isinstance(error, MemoryError):
            fact = f"{doing} ran out of memory: {str(error) or 'MemoryError'}"
        else:
            lines = str(error).strip().splitlines()
            fact = f"{doing} raised {type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")
        return {"fact": f"{where}: {fact}" if where else fact, "remedy": f"see: {code}" if code else ""}

    def _place(self, error: BaseException) -> tuple[str, str]:
        frames = traceback.extract_tb(error.__traceback__)
        for frame in reversed(frames):
            path = Path(frame.filename)
            if path.is_absolute() and path.is_relative_to(self._folder) and frame.lineno:
                line = linecache.getline(frame.filename, frame.lineno).strip()
                return f"{path.relative_to(self._folder)}:{frame.lineno}", line
        return "", ""


@contextlib.contextmanager
def _captured(printed: io.StringIO) -> Iterator[None]:
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TimeLimit

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    serve(TestChild().handle)
