"""The recorder's processes: two a recording, at once, each in its own sandbox with its own layout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kernelskill.errors import HarnessError

MAX_TRANSCRIPT_BYTES = 192 * 1024 * 1024


@dataclass(frozen=True)
class Ending:
    """How one recorder process ended, with what it wrote."""

    returncode: int
    """Negative: the signal that ended it."""
    timed_out: bool
    transcript: bytes
    complaint: str
    """What the loader of the recorder itself said, if anything."""

    @property
    def was_killed(self) -> bool:
        """Whether somebody else than we killed it."""
        return self.returncode == -signal.SIGKILL and not self.timed_out


@contextmanager
def sandbox_folder(files: Mapping[str, Path]) -> Iterator[Path]:
    """Make the only folder that candidate code can see: copies of these files, under these names."""
    folder = Path(tempfile.mkdtemp(prefix="kernelskill-record-")).resolve()
    try:
        for name, source in files.items():
            shutil.copyfile(source, folder / name)
            (folder / name).chmod(0o444)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_layouts(
    program: Path, specification: Callable[[int], bytes], *, folder: Path, timeout_s: float
) -> tuple[Ending, Ending]:
    """Record under both layouts at once.

    Raises:
        HarnessError: The recorder cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    first = _Recording(program, specification(0), folder)
    try:
        second = _Recording(program, specification(1), folder)
    except BaseException:
        first.end()
        raise
    try:
        return first.wait(deadline), second.wait(deadline)
    finally:
        first.end()
        second.end()


class _Recording:
    """One recorder process. Both channels are files without a name, so neither side can block the other."""

    def __init__(self, program: Path, specification: bytes, folder: Path) -> None:
        self._transcript = os.memfd_create("transcript")
        try:
            with _memory_file(specification) as given:
                self._process = subprocess.Popen(
                    [str(program)],
                    stdin=given,
                    stdout=self._transcript,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env={"LANG": "C", "PATH": os.defpath},
                    start_new_session=True,
                )
        except OSError as error:
            os.close(self._transcript)
            raise HarnessError(f"the recorder cannot be started: {error}") from error

    def wait(self, deadline: float) -> Ending:
        """Wait for the end, killing the process at the deadline."""
        timed_out = False
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            timed_out = True
            self._kill()
        stderr = self._process.stderr
        complaint = stderr.read(4096).decode(errors="replace").strip() if stderr is not None else ""
        size = min(os.fstat(self._transcript).st_size, MAX_TRANSCRIPT_BYTES + 1)
        return Ending(
            returncode=self._process.returncode,
            timed_out=timed_out,
            transcript=os.pread(self._transcript, size, 0),
            complaint=complaint,
        )

    def end(self) -> None:
        """Leave nothing behind; safe to call twice."""
        if self._transcript < 0:
            return
        self._kill()
        if self._process.stderr is not None:
            self._process.stderr.close()
        os.close(self._transcript)
        self._transcript = -1

    def _kill(self) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("specification")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
