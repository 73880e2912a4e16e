"""What a cubin's machine code holds: a look at the opcodes, and where that asks for it the disassembler."""

from __future__ import annotations

from pathlib import Path

from kernelskill.backends.elf import ElfFile
from kernelskill.backends.entry import SOURCES
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.child import Limits, run_child
from kernelskill.isolation.confinement import Confinement, confinement_level
from kernelskill.isolation.environment import clean_environment, is_open_to_all, unprivileged_uid

_OUTPUT_BYTES = 64 << 20
_LIMIT_S = 30.0
_INSTRUCTION_BYTES = 16
_OPCODE_BITS = 0x1FF
_PRODUCTS = frozenset([0x03C, 0x037, 0x03D, 0x1F0, 0x1F1, 0x1F2, 0x1F3])
"""HMMA, IMMA, BMMA, HGMMA, IGMMA, BGMMA and QGMMA of sm_80 to sm_90; DMMA gives nothing up and is left out."""


def holds_products(cubin: bytes) -> bool:
    """Whether any instruction multiplies matrices of narrow types, without the disassembler's 0.7 s.

    Raises:
        ArtifactCorrupt: It is no cubin.
    """
    elf = ElfFile(cubin, "the cubin")
    for section in elf.sections:
        if section.name.startswith(".text."):
            code = elf.content(section)
            words = (code[at] | code[at + 1] << 8 for at in range(0, len(code) - 1, _INSTRUCTION_BYTES))
            if any(word & _OPCODE_BITS in _PRODUCTS for word in words):
                return True
    return False


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
