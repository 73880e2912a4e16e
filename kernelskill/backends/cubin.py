"""What device code needs, read from the cubin itself: kernels with their parameters, and variables.

The facts are in `.nv.info` attributes: a format byte, an attribute byte and a 16-bit size or value.
The compiler's log (`-Xptxas -v`) says the same of registers and shared memory, but nothing of
parameters; `cuobjdump --dump-elf` prints these attributes by the names used here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from kernelskill.backends.demangle import display_name
from kernelskill.backends.elf import ElfFile, Section, Symbol
from kernelskill.errors import ArtifactCorrupt
from kernelskill.schema.build import DeviceVariable, KernelParameter, KernelResources

_KERNEL_INFO = ".nv.info."
_FORMAT_SIZED = 4
_EIATTR_MAX_THREADS = 0x05
_EIATTR_FRAME_SIZE = 0x11
_EIATTR_KPARAM_INFO = 0x17
_EIATTR_REGCOUNT = 0x2F
_EIATTR_KPARAM_INFO_V2 = 0x45
_SYSTEM_SHARED_BYTES = 1024
"""From sm_90 on, the section of a kernel's shared memory includes what the system takes of each block."""
_OBJECT = 1
_FIRST_SPECIAL_SECTION = 0xFF00


def read_cubin(data: bytes) -> tuple[tuple[KernelResources, ...], tuple[DeviceVariable, ...]]:
    """Return the kernels and the device variables of a cubin, each sorted by name.

    Raises:
        ArtifactCorrupt: The bytes are no cubin.
    """
    elf = ElfFile(data, "the cubin")
    try:
        kernels = tuple(sorted(_kernels(elf), key=lambda kernel: kernel.name))
    except (struct.error, IndexError) as error:
        raise ArtifactCorrupt("the cubin holds attributes that cannot be read") from error
    return kernels, tuple(sorted(_variables(elf), key=lambda variable: variable.name))


@dataclass
class _KernelInfo:
    parameters: dict[int, KernelParameter] = field(default_factory=dict)
    max_threads: int = 0


_MACHINE_CODE = (".text.", ".nv.constant", ".nv.global")


def machine_code_digest(data: bytes) -> str:
    """Return a SHA-256 over what the GPU executes: instructions, constants, variables and resources.

    Line tables and source paths are left out, so that two sources that compile to the same program
    have the same digest.

    Raises:
        ArtifactCorrupt: It is no cubin.
    """
    elf = ElfFile(data, "the cubin")
    digest = sha256()
    for section in sorted(elf.sections, key=lambda section: section.name):
        if section.name.startswith(_MACHINE_CODE):
            digest.update(f"{section.name} {section.size}".encode())
            digest.update(elf.content(section) if section.has_bytes else b"")
    for kernel in read_cubin(data)[0]:
        digest.update(
            f"{kernel.name} {kernel.registers} {kernel.static_shared_bytes} {kernel.parameters}".encode()
        )
    return digest.hexdigest()


def _kernels(elf: ElfFile) -> Iterator[KernelResources]:
    registers = _by_symbol(elf, _EIATTR_REGCOUNT)
    frames = _by_symbol(elf, _EIATTR_FRAME_SIZE)
    reserved = _SYSTEM_SHARED_BYTES if elf.section(".nv.shared.reserved.0") is not None else 0
    for section in elf.sections:
        name = section.name.removeprefix(_KERNEL_INFO)
        if name == section.name or elf.section(f".text.{name}") is None:
            continue
        info = _kernel_info(elf, section)
        shared = elf.section(f".nv.shared.{name}")
        yield KernelResources(
            name=name,
            display_name=display_name(name),
            registers=registers.get(name, 0),
            static_shared_bytes=max(0, shared.size - reserved) if shared is not None else 0,
            stack_bytes=frames.get(name, 0),
            max_threads=info.max_threads,
            parameters=tuple(info.parameters[ordinal] for ordinal in sorted(info.parameters)),
        )


def _kernel_info(elf: ElfFile, section: Section) -> _KernelInfo:
    info = _KernelInfo()
    for attribute, value in _attributes(elf.content(section)):
        if attribute == _EIATTR_KPARAM_INFO:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            info.parameters[ordinal] = KernelParameter(offset=offset, size=word >> 18)
        elif attribute == _EIATTR_KPARAM_INFO_V2:
            _, ordinal, offset, size = struct.unpack("<IHHI", value)
            info.parameters[ordinal] = KernelParameter(offset=offset, size=size)
        elif attribute == _EIATTR_MAX_THREADS:
            x, y, z = struct.unpack("<III", value)
            info.max_threads = x * y * z
    return info


def _by_symbol(elf: ElfFile, wanted: int) -> dict[str, int]:
    section = elf.section(".nv.info")
    if section is None:
        return {}
    pairs = (struct.unpack("<II", value) for a, value in _attributes(elf.content(section)) if a == wanted)
    return {elf.symbols[index].name: figure for index, figure in pairs}


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(content):
        layout, attribute, word = struct.unpack_from("<BBH", content, position)
        position += 4
        if layout == _FORMAT_SIZED:
            yield attribute, content[position : position + word]
            position += word
        else:
            yield attribute, struct.pack("<H", word)


def _variables(elf: ElfFile) -> Iterator[DeviceVariable]:
    for symbol in elf.symbols:
        kind = _memory_of(elf, symbol)
        if symbol.kind == _OBJECT and symbol.size and kind:
            yield DeviceVariable(name=symbol.name, size_bytes=symbol.size, constant=kind == "constant")


def _memory_of(elf: ElfFile, symbol: Symbol) -> str:
    """Return `global`, `constant` or nothing: bank 3 is the user's constants, others the compiler's."""
    if not 0 < symbol.section < min(len(elf.sections), _FIRST_SPECIAL_SECTION):
        return ""
    section = elf.sections[symbol.section].name
    if section.startswith(".nv.global"):
        return "global"
    return "constant" if section == ".nv.constant3" else ""
