"""From a build's PTX to shared objects that the worker loads; kept in the user's cache."""

from __future__ import annotations

import functools
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.backends.emulated.ptx.parser import parse
from kernelskill.backends.emulated.ptx.syntax import Location, Module, PtxError
from kernelskill.backends.emulated.translate.flow import flows
from kernelskill.backends.emulated.translate.mix import block_figures
from kernelskill.backends.emulated.translate.module import Translation, translate_module
from kernelskill.backends.sandbox import require_not_killed
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import HarnessError, ToolchainError
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import Limits, clean_environment, run_child
from kernelskill.resources import cache_dir
from kernelskill.schema.base import canonical_json, sha256_bytes, sha256_text
from kernelskill.schema.build import Build

RUNTIME = Path(__file__).parent / "runtime"
_COMPILE_S = 300.0
_COMMON = (
    "-std=c++20", "-fPIC", "-shared", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math", "-ftls-model=initial-exec",
)  # fmt: skip
_KERNEL_LEVEL = "-O1"
"""-O2 takes half as long again to compile and gains less than that in the runs of small cases."""
MODULE_FILE = "module.json"


@dataclass(frozen=True, slots=True)
class Library:
    """A translated build, ready to be loaded."""

    folder: Path
    """Holds `kernels.so`, `kernels.cpp` and `module.json`."""
    runtime: Path
    module: dict[str, Any]

    @property
    def traced(self) -> Path:
        """The instrumented object; made on demand by `traced_object`."""
        return self.folder / "kernels.so"


def prepare(build: Build, toolchain: Toolchain) -> Library:
    """Translate and compile a build's device code, or return what an equal one gave before.

    Raises:
        HarnessError: The host compiler refuses the translation.
        ToolchainError: The host compiler refuses the runtime.
    """
    text = (Path(build.folder) / "device.ptx").read_text(encoding="utf-8", errors="replace")
    return prepare_ptx(text, toolchain)


def prepare_ptx(text: str, toolchain: Toolchain) -> Library:
    """Translate and compile PTX.

    Raises:
        HarnessError: The host compiler refuses the translation.
        ToolchainError: The host compiler refuses the runtime.
    """
    key = _key(toolchain, "plain", text)
    folder = _cache(cache_dir()).get_or_build(key, lambda out: _translate_into(out, text, toolchain))
    module = json.loads((folder / MODULE_FILE).read_text(encoding="utf-8"))
    return Library(folder, runtime_library(toolchain), module)


def traced_object(library: Library, toolchain: Toolchain) -> Path:
    """Return the instrumented object of a library, compiled on first use.

    Raises:
        HarnessError: The host compiler refuses it.
    """
    code = (library.folder / "kernels.cpp").read_text(encoding="utf-8")
    key = _key(toolchain, "traced", code)

    def build(out: Path) -> None:
        (out / "kernels.cpp").write_text(code, encoding="utf-8")
        _compile_kernels(out, toolchain, "traced.so", "-DKS_INSTRUMENT")

    return _cache(cache_dir()).get_or_build(key, build) / "traced.so"


def runtime_library(toolchain: Toolchain) -> Path:
    """Return the runtime, compiled on first use.

    Raises:
        ToolchainError: The host compiler refuses it.
    """
    sources = sorted(RUNTIME.glob("*.cpp"))

    def build(out: Path) -> None:
        command = [str(toolchain.gxx), "-O2", *_COMMON, *map(str, sources), "-o", "runtime.so", "-lpthread"]
        done = run_child(command, limits=Limits(wall_s=_COMPILE_S), cwd=out, env=clean_environment())
        require_not_killed(done, toolchain.gxx.name)
        if done.returncode != 0:
            raise ToolchainError(
                f"g++ {toolchain.gxx_version} cannot compile the emulated device: {done.stderr[:300]}",
                remedy="install g++ 11 or newer",
            )

    return _cache(cache_dir()).get_or_build(_key(toolchain, "runtime", ""), build) / "runtime.so"


def _translate_into(out: Path, text: str, toolchain: Toolchain) -> None:
    try:
        module = parse(text)
        unreadable = ""
    except PtxError as error:  # no kernel is usable then; each says why when it is launched
        module, unreadable = Module(), f"device code that cannot be read ({error})"
    translation = translate_module(module)
    (out / "kernels.cpp").write_text(translation.code, encoding="utf-8")
    facts = module_facts(translation, module.files)
    if unreadable:
        facts["refused"]["*"] = [unreadable, []]
    (out / MODULE_FILE).write_text(json.dumps(facts), encoding="utf-8")
    _compile_kernels(out, toolchain, "kernels.so")


def _compile_kernels(out: Path, toolchain: Toolchain, name: str, *flags: str) -> None:
    command = [
        str(toolchain.gxx), _KERNEL_LEVEL, *_COMMON, *processor_flags(), *flags, "-w",
        f"-I{RUNTIME}", "kernels.cpp", "-o", name,
    ]  # fmt: skip
    done = run_child(command, limits=Limits(wall_s=_COMPILE_S), cwd=out, env=clean_environment())
    require_not_killed(done, toolchain.gxx.name)
    if done.returncode != 0:
        raise HarnessError(f"the host compiler refuses a translated kernel: {done.stderr[:600]}")


def module_facts(translation: Translation, files: dict[int, str]) -> dict[str, Any]:
    """Return what the worker and the estimate need to know of a translation, as JSON values."""
    return {
        "files": {str(number): name for number, name in files.items()},
        "kernels": {
            kernel.name: {
                "static_shared": kernel.static_shared,
                "local_bytes": kernel.local_bytes,
                "registers": kernel.registers,
                "parameters": [list(parameter) for parameter in kernel.parameters],
                "waits": kernel.waits,
                "uses_shared": kernel.uses_shared,
                "ordered": kernel.ordered,
            }
            for kernel in translation.kernels
        },
        "refused": {
            name: [refused.reason, [list(place) for place in _chain(refused.location)]]
            for name, refused in translation.refused.items()
        },
        "sites": [
            [site.kernel, site.opcode, [list(place) for place in _chain(site.location)]]
            for site in translation.context.sites
        ],
        "blocks": [
            block_figures(block) | flow.figures()
            for block, flow in zip(translation.context.blocks, flows(translation.context.blocks), strict=True)
        ],
    }


def _chain(location: Location | None) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    while location is not None and len(places) < 16:
        places.append((location.file, location.line))
        location = location.inlined_at
    return places


def _key(toolchain: Toolchain, kind: str, text: str) -> str:
    parts = [kind, toolchain.gxx_version, _sources_digest(), _KERNEL_LEVEL, *_COMMON, *processor_flags()]
    return sha256_text(canonical_json([*parts, sha256_text(text)]))


@functools.cache
def _sources_digest() -> str:
    """Return a digest of the runtime and of the translator itself."""
    room = Path(__file__).parent
    files = [
        *sorted(RUNTIME.glob("ks_*")),
        *sorted(room.glob("ptx/*.py")),
        *sorted(room.glob("translate/*.py")),
    ]
    files.append(Path(__file__))
    return sha256_text(canonical_json([[file.name, sha256_bytes(file.read_bytes())] for file in files]))


@functools.cache
def processor_flags() -> tuple[str, ...]:
    """Return the options for what this processor can do: a fused multiply-add in hardware counts most."""
    if platform.machine() != "x86_64":
        return ()
    try:
        known = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return ()
    wanted = {
        "fma": "-mfma",
        "sse4_1": "-msse4.1",
        "popcnt": "-mpopcnt",
        "lzcnt": "-mlzcnt",
        "abm": "-mlzcnt",
    }
    return tuple(sorted({flag for name, flag in wanted.items() if name in known}))


@functools.cache
def _cache(home: Path) -> BuildCache:
    return BuildCache(home / "emulated")
