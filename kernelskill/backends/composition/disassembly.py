"""Ask the disassembler of the toolkit what machine code a cubin holds."""

from __future__ import annotations

from pathlib import Path

from kernelskill.backends.entry import SOURCES
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.child import Limits, run_child
from kernelskill.isolation.confinement import Confinement, confinement_level
from kernelskill.isolation.environment import clean_environment, is_open_to_all, unprivileged_uid

_OUTPUT_BYTES = 64 << 20
_LIMIT_S = 30.0


def disassemble(cubin: Path, folder: Path, toolchain: Toolchain) -> str:
    """Return the SASS of a cubin; nothing where no disassembler runs, since the PTX shows the same.

    Raises:
        HarnessError: It could not be started.
    """
    program = toolchain.nvdisasm
    if program is None:
        return ""
    if unprivileged_uid() is not None and not is_open_to_all(program) and confinement_level() < 1:
        return ""
    result = run_child(
        [str(program), "-c", str(cubin)],
        limits=Limits(wall_s=_LIMIT_S, file_bytes=0, output_bytes=_OUTPUT_BYTES),
        cwd=folder / SOURCES,
        env=clean_environment(folder),
        unprivileged=is_open_to_all(program),
        confinement=Confinement.around(folder, program),
    )
    return result.stdout if result.returncode == 0 and not result.timed_out else ""
