"""Direct execution: a launcher that cannot be recorded runs itself, in an untrusted process.

The process is unprivileged and holds neither expected values nor the verdict. It does hold its own
clock, so its times are its word, bounded only by ours: whoever uses them labels them `direct`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from kernelskill.backends.base import Call, RunOutcome, TimingRun
from kernelskill.backends.cuda.client import Failed
from kernelskill.backends.cuda.prepared import worker_environment
from kernelskill.backends.recorder.caller import UnknownArgument, caller_source, scalar_bytes
from kernelskill.backends.sandbox import require_not_killed
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing, DeviceUnavailable, HarnessError, WorkerDied
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import Child, ChildTimeout, Limits, run_child
from kernelskill.isolation.environment import hand_over, unprivileged_uid
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.build import Build
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature

_SET_UP_S = 120.0
_LIBRARY = "direct.so"
_MOST_PROCESSES = 512
"""Processes and threads of the unprivileged user: the driver needs a few, a fork bomb all there are."""
_MOST_FILE_BYTES = 1 << 36
"""Outputs come back as files; none is as large as this."""
_ESCAPE_MS = 0.02
_ESCAPE_SHARE = 0.2
"""Wall time beyond the events by more than both: work escaped to another stream, or the host is slow."""


class DirectWorker:
    """A child process that calls the launcher itself; the Worker protocol with `load_call` for `load`."""

    def __init__(
        self,
        device: int,
        build: Build,
        signature: Signature,
        *,
        toolchain: Toolchain,
        cache: BuildCache,
        seen_free: Callable[[], None] | None = None,
    ) -> None:
        self._seen_free = seen_free
        library = link_launcher(build, signature, toolchain=toolchain, cache=cache)
        self._signature = signature
        self._folder = Path(tempfile.mkdtemp(prefix="kernelskill-direct-"))
        self._dead = ""
        self._failure: RunOutcome | None = None
        self._sizes: dict[str, int] = {}
        self._files = 0
        try:
            copy = self._folder / _LIBRARY
            shutil.copyfile(library, copy)
            copy.chmod(0o755)
            hand_over(self._folder)
            self._child = Child.start(
                [
                    *(sys.executable, "-P", "-m", "kernelskill.backends.cuda.direct_worker"),
                    *("--device", str(device), "--library", str(copy)),
                ],
                cwd=self._folder,
                limits=_limits(),
                env=worker_environment(self._folder),
                unprivileged=True,
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def load(self, plan: LaunchPlan, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Refuse: a direct worker takes calls.

        Raises:
            HarnessError: Always.
        """
        raise HarnessError("a direct worker carries out calls, not plans", remedy="use load_call")

    def load_call(self, call: Call, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Make `call` the current one: allocate its buffers with guard bands.

        Raises:
            HarnessError: The call does not fit the signature.
        """
        self._sizes = dict(call.buffers)
        message = {
            "do": "load",
            "buffers": call.buffers,
            "arguments": _arguments(self._signature, call),
            "returns": self._signature.returns,
            "guard_bytes": guard_bytes,
            "salt": salt,
        }
        self._failure = None
        try:
            self._ask(message, _SET_UP_S)
        except Failed as failed:
            self._failure = failed.outcome

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        """Set all memory to `poison`, then the named buffers from files."""
        self._set("fill", contents, poison=poison)

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite the named buffers."""
        self._set("put", contents)

    def run(self, *, timeout_s: float) -> RunOutcome:
        """Call the launcher once and wait for the device."""
        if self._failure is not None:
            return self._failure
        try:
            self._ask({"do": "run"}, timeout_s)
        except Failed as failed:
            return failed.outcome
        except WorkerDied as error:
            return RunOutcome(
                status=Status.RUNTIME_ERROR, detail=f"the launcher's process ended: {error.message}"
            )
        return RunOutcome(status=Status.PASSED)

    def read(self, buffer: str, destination: Path) -> None:
        """Write a buffer's bytes to a file.

        Raises:
            HarnessError: There is no such buffer, or what came is not of its size.
        """
        held = self._folder / f"out-{self._next()}"
        self._plain({"do": "read", "buffer": buffer, "destination": str(held)})
        try:
            # the file is the candidate's: a link out of the folder must not be followed
            if held.is_symlink() or held.stat().st_size != self._sizes.get(buffer, -1):
                raise HarnessError(f"the launcher's process gave no contents of {buffer!r}")
            shutil.copyfile(held, destination, follow_symlinks=False)
        except OSError as error:
            raise HarnessError(f"the contents of {buffer!r} cannot be read: {error}") from error
        finally:
            held.unlink(missing_ok=True)

    def damaged_guards(self) -> tuple[str, ...]:
        """Return the buffers whose guard bands were written to."""
        return tuple(str(name) for name in self._plain({"do": "damaged_guards"}).get("damaged", ()))

    def time(
        self, samples: int, *, flush_l2: bool, timeout_s: float, repeats: int = 0
    ) -> TimingRun | RunOutcome:
        """Time the launcher; events and the wall clock must agree, else the wall clock counts."""
        if self._failure is not None:
            return self._failure
        started = time.monotonic()
        try:
            answer = self._ask({"do": "time", "samples": samples, "flush_l2": flush_l2}, timeout_s)
            return arbitrate(answer, samples, (time.monotonic() - started) * 1e3)
        except Failed as failed:
            return failed.outcome
        except WorkerDied as error:
            return RunOutcome(
                status=Status.RUNTIME_ERROR, detail=f"the launcher's process ended: {error.message}"
            )

    def close(self) -> None:
        """End the child process; safe to call twice."""
        self._child.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> DirectWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _set(self, action: str, contents: Mapping[str, Path], **extra: int) -> None:
        if self._failure is not None:
            return
        copies = {}
        for name, path in contents.items():
            copy = self._folder / f"in-{self._next()}"
            shutil.copyfile(path, copy)
            hand_over(copy)
            copies[name] = copy
        try:
            self._plain(
                {"do": action, "contents": {name: str(copy) for name, copy in copies.items()}, **extra}
            )
        finally:
            for copy in copies.values():
                copy.unlink(missing_ok=True)

    def _plain(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._ask(message, _SET_UP_S)
        except Failed as failed:
            raise HarnessError(f"{message['do']}: {failed.outcome.detail}") from failed

    def _next(self) -> int:
        self._files += 1
        return self._files

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._dead:
            raise WorkerDied(self._dead, remedy="close this worker and open another")
        try:
            answer = self._child.call(message, timeout_s=timeout_s)
        except ChildTimeout as error:
            self._dead = f"the launcher's process was killed after {timeout_s:g} s"
            if self._seen_free is not None:
                self._seen_free()
            outcome = RunOutcome(status=Status.TIMEOUT, detail=f"not finished after {timeout_s:g} s")
            raise Failed(outcome) from error
        except WorkerDied as error:
            self._dead = error.message
            raise
        ok, failed = answer.get("ok"), answer.get("failed")
        if isinstance(ok, dict):
            return ok
        if isinstance(failed, dict):
            raise Failed(_outcome(failed))
        if "unavailable" in answer:
            raise DeviceUnavailable(str(answer["unavailable"]), remedy="see nvidia-smi")
        raise HarnessError(str(answer.get("harness", "the answer of the launcher's process is malformed")))


def _limits() -> Limits:
    """Hold what the launcher's process may start and write; where it runs as us, our own processes would count."""
    held = _MOST_PROCESSES if unprivileged_uid() is not None else None
    return Limits(wall_s=_SET_UP_S, processes=held, file_bytes=_MOST_FILE_BYTES)


def link_launcher(build: Build, signature: Signature, *, toolchain: Toolchain, cache: BuildCache) -> Path:
    """Return a library of the launcher with the real CUDA runtime and our caller in it.

    Raises:
        CompilerMissing: The toolkit has no static runtime, or the link fails.
        HarnessError: A parameter cannot be passed by value.
    """
    runtime = _static_runtime(toolchain)
    try:
        source = caller_source(signature)
    except UnknownArgument as error:
        raise HarnessError(str(error)) from error
    key = "direct-" + sha256_text(canonical_json([build.key, source, str(runtime), toolchain.compiler]))[:32]

    def link(folder: Path) -> None:
        (folder / "caller.cpp").write_text(source, encoding="utf-8")
        command = [
            *(
                str(toolchain.gxx),
                "-O2",
                "-shared",
                "-fPIC",
                "caller.cpp",
                str(Path(build.folder) / "host.o"),
            ),
            *(str(runtime), "-ldl", "-lrt", "-lpthread", "-Wl,-z,defs", "-o", _LIBRARY),
        ]
        done = run_child(command, limits=Limits(wall_s=_SET_UP_S), cwd=folder)
        require_not_killed(done, toolchain.gxx.name)
        if done.returncode != 0 or done.timed_out:
            first = done.stderr.strip().partition("\n")[0] or f"exit status {done.returncode}"
            raise CompilerMissing(
                f"the launcher cannot be linked with the CUDA runtime: {first}",
                remedy="libraries beyond the runtime are not linked; write the launcher without them",
            )

    return cache.get_or_build(key, link) / _LIBRARY


def arbitrate(answer: Mapping[str, Any], samples: int, call_ms: float) -> TimingRun:
    """Turn the process's word into samples that are never shorter than our own clock allows to believe.

    Raises:
        Failed: What was reported cannot be.
    """
    events, walls = _numbers(answer.get("events_ms")), _numbers(answer.get("walls_ms"))
    if len(events) != samples or len(walls) != samples:
        raise Failed(RunOutcome(status=Status.SUSPICIOUS, detail="the launcher's process gave no samples"))
    if sum(walls) > call_ms:
        raise Failed(
            RunOutcome(status=Status.SUSPICIOUS, detail="the reported times are longer than the whole call")
        )
    gap = median(walls) - median(events)
    if gap > max(_ESCAPE_MS, _ESCAPE_SHARE * median(events)):
        note = f"timed by the host's clock: events show {gap * 1e3:.0f} us less than launch to synchronise"
        return TimingRun(samples_ms=tuple(walls), evidence="measured", notes=(note,))
    return TimingRun(samples_ms=tuple(events), evidence="measured")


def _numbers(values: object) -> list[float]:
    if not isinstance(values, list):
        return []
    return [float(value) for value in values if isinstance(value, int | float) and value > 0]


def _outcome(failed: Mapping[str, Any]) -> RunOutcome:
    try:
        return RunOutcome(
            status=Status(str(failed.get("status"))), detail=str(failed.get("detail", ""))[:2000]
        )
    except ValueError:
        return RunOutcome(
            status=Status.RUNTIME_ERROR, detail="the launcher's process reported an unknown failure"
        )


def _arguments(signature: Signature, call: Call) -> list[dict[str, Any]]:
    """Return each argument as `{"buffer", "offset"}`, `{"hex"}` or `{}` for a stream.

    Raises:
        HarnessError: The call lacks a parameter or gives it an impossible value.
    """
    arguments: list[dict[str, Any]] = []
    try:
        for parameter in signature.parameters:
            if parameter.kind == "pointer":
                place = call.pointers[parameter.name]
                arguments.append({"buffer": place.buffer, "offset": place.offset})
            elif parameter.kind == "scalar":
                arguments.append({"hex": scalar_bytes(parameter, call.scalars[parameter.name]).hex()})
            else:
                arguments.append({})
    except KeyError as error:
        raise HarnessError(f"the call lacks the parameter {error}") from error
    except UnknownArgument as error:
        raise HarnessError(str(error)) from error
    return arguments


def _static_runtime(toolchain: Toolchain) -> Path:
    root = toolchain.root
    places = [root / "lib64", root / "lib", *sorted(root.glob("targets/*/lib"))]
    places.append(root.parent / "cuda_runtime" / "lib")
    for place in places:
        if (place / "libcudart_static.a").is_file():
            return place / "libcudart_static.a"
    raise CompilerMissing(
        f"the CUDA toolkit in {str(root)!r} lacks libcudart_static.a",
        remedy="pip install 'kernelskill[nvcc]'",
    )
