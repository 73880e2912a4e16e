"""What the machine code of a build holds, kernel by kernel: its instructions and their mix."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import HarnessError
from kernelskill.isolation.child import Limits, run_child
from kernelskill.isolation.confinement import Confinement
from kernelskill.isolation.environment import clean_environment, hand_over, is_open_to_all, private_folder
from kernelskill.schema.base import Record
from kernelskill.schema.build import Build

_FILE = Path(__file__).with_name("opcodes.toml")
_LIMIT_S = 60.0
_OUTPUT_BYTES = 64 << 20
_SECTION = re.compile(r"^(?:\.text\.(?P<disassembler>\S+):|\s*Function : (?P<dump>\S+))\s*$")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<text>(?:\{\s*)?(?:@!?U?P(?:\d+|T)\s+)?(?P<opcode>[A-Z][A-Z0-9_.]*).*?)\s*;"
)
_TARGET = re.compile(r"`\(\.L_\w+\)|(?<=BRA )0x[0-9a-f]+|(?<=BSSY )(\w+, )?0x[0-9a-f]+")
OTHER = "other"


class KernelCode(Record):
    """The machine code of one kernel."""

    name: str
    """Mangled."""
    instructions: tuple[str, ...]
    """One text each, without addresses and encodings, as the disassembler writes it."""
    opcodes: tuple[str, ...]

    @property
    def comparable(self) -> tuple[str, ...]:
        """The instructions without the places that jumps lead to, which every change before them moves."""
        return tuple(_TARGET.sub("->", instruction) for instruction in self.instructions)

    def mix(self) -> dict[str, int]:
        """Return how many instructions of each class it holds, the largest class first.

        They are counted as they stand in the code: one in a loop counts once.
        """
        counts = Counter(opcode_class(opcode) for opcode in self.opcodes if opcode != "NOP")
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def machine_code(build: Build, toolchain: Toolchain) -> dict[str, KernelCode]:
    """Return the code of every kernel by mangled name; nothing where no disassembler is installed or runs."""
    cubin = Path(build.folder) / "device.cubin"
    for program, option in ((toolchain.nvdisasm, "-c"), (toolchain.cuobjdump, "-sass")):
        if program is not None and (found := read_sass(_said(program, option, cubin))):
            return found
    return {}


def _said(program: Path, option: str, cubin: Path) -> str:
    """Run a disassembler on a copy; its user may not enter the folder of the original. Nothing if it fails."""
    with private_folder("kernelskill-sass-") as folder:
        try:
            shutil.copyfile(cubin, folder / cubin.name)
        except OSError:  # the cache has dropped the build
            return ""
        hand_over(folder / cubin.name)
        done = run_child(
            [str(program), option, cubin.name],
            limits=Limits(wall_s=_LIMIT_S, file_bytes=0, output_bytes=_OUTPUT_BYTES),
            cwd=folder,
            env=clean_environment(folder),
            unprivileged=is_open_to_all(program),
            confinement=Confinement.around(folder, program),
        )
    return done.stdout if done.returncode == 0 and not done.timed_out else ""


def read_sass(text: str) -> dict[str, KernelCode]:
    """Read what `nvdisasm -c` or `cuobjdump -sass` prints; what is no instruction is passed over."""
    instructions: dict[str, list[str]] = {}
    opcodes: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            name = section["disassembler"] or section["dump"]
            instructions.setdefault(name, [])
            opcodes.setdefault(name, [])
        elif name and (found := _INSTRUCTION.match(line)):
            instructions[name].append(" ".join(found["text"].split()))
            opcodes[name].append(found["opcode"])
    return {
        name: KernelCode(name=name, instructions=tuple(instructions[name]), opcodes=tuple(opcodes[name]))
        for name in instructions
        if instructions[name]
    }


def opcode_class(opcode: str) -> str:
    """Return the class of an opcode, for example `global loads` for `LDG.E.128`; `other` where none fits."""
    return next((name for name, pattern in _classes() if pattern.match(opcode)), OTHER)


@lru_cache(maxsize=1)
def _classes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Read the shipped table.

    Raises:
        HarnessError: It is damaged.
    """
    try:
        return tuple(_compiled(tomllib.loads(_FILE.read_text(encoding="utf-8"))["class"]))
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        raise HarnessError(f"{_FILE.name} cannot be read: {error}", remedy="reinstall kernelskill") from error


def _compiled(tables: list[dict[str, object]]) -> Iterator[tuple[str, re.Pattern[str]]]:
    # Where a longer opcode has its own line, `IMAD.MOV` for example, it must win over `IMAD`.
    ordered = sorted(tables, key=lambda table: table["name"] == "integer")
    for table in ordered:
        patterns = table["opcodes"]
        if not isinstance(patterns, list):
            raise TypeError(f"{table['name']!r} has no list of opcodes")
        yield str(table["name"]), re.compile(rf"(?:{'|'.join(patterns)})(?![A-Z0-9])")
