"""Find the constructs of one finished compilation, by means that back one another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from kernelskill.backends.composition.device_rules import ptx_constructs, sass_constructs
from kernelskill.backends.composition.disassembly import disassemble, holds_products
from kernelskill.backends.composition.host_symbols import host_symbol_constructs
from kernelskill.backends.composition.own_text import host_parts, own_parts
from kernelskill.backends.composition.source_rules import (
    directive_constructs,
    host_constructs,
    source_constructs,
)
from kernelskill.backends.toolchain import Toolchain
from kernelskill.schema.build import Construct, KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Allowance
from kernelskill.source.tokens import TokenKind, tokens

_LIBRARY_KERNELS = ("cub::", "thrust::", "cutlass::", "cublas", "cudnn")


def find_constructs(
    candidate: Candidate,
    folder: Path,
    *,
    ptx: str,
    cubin: Path,
    kernels: tuple[KernelResources, ...],
    toolchain: Toolchain,
) -> tuple[Construct, ...]:
    """Return what a candidate is made of, each family with its first place.

    Args:
        candidate: What was compiled.
        folder: Where the compiler worked: `host.o` and the intermediate files of nvcc's `--keep` lie there.
        ptx: The device code, with the candidate's own relative paths.
        cubin: What was assembled from it; disassembled only where it holds what the PTX does not show.
        kernels: Of the device code.
        toolchain: Has the disassembler.

    Raises:
        ArtifactCorrupt: The host object cannot be read.
    """
    found: dict[tuple[str, bool], Construct] = {}
    every = (
        _in_sources(candidate, folder),
        _in_machine_code(folder, ptx, cubin, toolchain),
        _library_kernels(kernels),
    )
    for construct in chain.from_iterable(every):
        found.setdefault((construct.family, construct.harmless), construct)
    return tuple(_placed(construct, candidate) for construct in found.values())


def _in_sources(candidate: Candidate, folder: Path) -> Iterator[Construct]:
    for file in candidate.files:
        yield from directive_constructs(file.path, file.text)
    spelled: set[str] = set()
    for pattern in ("*.cpp1.ii", "*.cpp4.ii"):
        for path in sorted(folder.glob(pattern)):
            parts = [
                (part.file, list(tokens(part.text, part.line)))
                for part in own_parts(_text(path), str(folder))
            ]
            spelled.update(token.text for _, found in parts for token in found)
            for file_path, found in parts:
                yield from source_constructs(file_path, found)
    for path in sorted(folder.glob("*.cudafe1.cpp")):
        yield from host_constructs(host_parts(_text(path), str(folder)))
    yield from host_symbol_constructs((folder / "host.o").read_bytes(), spelled)


def _in_machine_code(folder: Path, ptx: str, cubin: Path, toolchain: Toolchain) -> Iterator[Construct]:
    found = list(ptx_constructs(ptx))
    yield from found
    if not any("mma" in construct.shown for construct in found) and holds_products(cubin.read_bytes()):
        yield from sass_constructs(disassemble(cubin, folder, toolchain))


def _library_kernels(kernels: tuple[KernelResources, ...]) -> Iterator[Construct]:
    for kernel in kernels:
        if kernel.display_name.startswith(_LIBRARY_KERNELS) and "EmptyKernel" not in kernel.name:
            shown = kernel.display_name.partition("<")[0]
            yield Construct(
                family="CUB and Thrust",
                allowance=Allowance.LIBRARIES,
                shown=shown,
                does=f"holds the kernel {shown}, which is a library's",
                found_in="ptx",
            )


def _placed(construct: Construct, candidate: Candidate) -> Construct:
    """Name the first line that holds a symbol of the host object, where the source spells it."""
    if construct.found_in != "host object" or construct.line:
        return construct
    for file in candidate.files:
        for token in tokens(file.text):
            if token.kind is TokenKind.IDENTIFIER and _spells(token.text, construct.shown):
                return construct.model_copy(update={"file": file.path, "line": token.line})
    return construct


def _spells(word: str, symbol: str) -> bool:
    return word == symbol or (symbol.startswith("_Z") and f"{len(word)}{word}" in symbol)


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")
