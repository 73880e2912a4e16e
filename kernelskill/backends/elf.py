"""Reading 64-bit little-endian ELF: sections, symbols, and what a shared object leaves undefined."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kernelskill.computed import computed
from kernelskill.errors import ArtifactCorrupt

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOBITS = 8
_WEAK = 2
_LAST_UNVERSIONED = 1
"""Symbol versions 0 (local) and 1 (global) name no library that would provide the symbol."""


@dataclass(frozen=True)
class Section:
    """One section header."""

    name: str
    kind: int
    offset: int
    size: int
    link: int
    info: int
    has_bytes: bool


@dataclass(frozen=True)
class Symbol:
    """One symbol."""

    name: str
    kind: int
    """1 for data, 2 for functions."""
    binding: int
    """0 local, 1 global, 2 weak."""
    section: int
    """Index of its section; 0 for an undefined symbol, 0xff00 and above for special ones."""
    value: int
    size: int


class ElfFile:
    """An ELF file in memory.

    Raises:
        ArtifactCorrupt: The bytes are no 64-bit little-endian ELF file, or it is cut off.
    """

    def __init__(self, data: bytes, what: str = "the file") -> None:
        self._data = data
        self._what = what
        if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
            raise ArtifactCorrupt(f"{what} is not a 64-bit little-endian ELF file")
        self.sections = self._read_sections()
        self._by_name = {section.name: section for section in self.sections}

    def section(self, name: str) -> Section | None:
        """Return the section of that name; the last one where several share it."""
        return self._by_name.get(name)

    def content(self, section: Section) -> bytes:
        """Return a section's bytes; empty for one that only reserves memory."""
        return self._slice(section.offset, section.size) if section.has_bytes else b""

    @computed
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols of `.symtab` in order; empty where it was stripped."""
        return self._read_symbols(".symtab")

    @computed
    def dynamic_symbols(self) -> tuple[Symbol, ...]:
        """All symbols of `.dynsym` in order."""
        return self._read_symbols(".dynsym")

    def unprovided_symbols(self) -> tuple[str, ...]:
        """Return, sorted, the symbols that no library named by this shared object provides."""
        versions = self._symbol_versions()
        found = {
            symbol.name
            for symbol, version in zip(self.dynamic_symbols, versions, strict=True)
            if symbol.section == 0
            and symbol.name
            and symbol.binding != _WEAK
            and version & 0x7FFF <= _LAST_UNVERSIONED
        }
        return tuple(sorted(found))

    def _symbol_versions(self) -> tuple[int, ...]:
        count = len(self.dynamic_symbols)
        section = self.section(".gnu.version")
        if section is None:
            return (0,) * count
        content = self.content(section)
        if len(content) < 2 * count:
            raise self._cut_off()
        return struct.unpack_from(f"<{count}H", content)

    def _read_sections(self) -> tuple[Section, ...]:
        header = _HEADER.unpack_from(self._data)
        offset, size, count, names_index = header[6], header[11], header[12], header[13]
        if count == 0:
            return ()
        if size != _SECTION.size or names_index >= count:
            raise self._cut_off()
        table = self._slice(offset, size * count)
        raw = [_SECTION.unpack_from(table, index * size) for index in range(count)]
        names = self._slice(raw[names_index][4], raw[names_index][5])
        return tuple(
            Section(
                name=self._text(names, item[0]),
                kind=item[1],
                offset=item[4],
                size=item[5],
                link=item[6],
                info=item[7],
                has_bytes=item[1] != _NOBITS,
            )
            for item in raw
        )

    def _read_symbols(self, table: str) -> tuple[Symbol, ...]:
        section = self.section(table)
        if section is None:
            return ()
        if section.link >= len(self.sections):
            raise self._cut_off()
        names = self.content(self.sections[section.link])
        content = self.content(section)
        content = content[: len(content) - len(content) % _SYMBOL.size]
        return tuple(
            Symbol(
                name=self._text(names, name),
                kind=info & 15,
                binding=info >> 4,
                section=index,
                value=value,
                size=size,
            )
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(content)
        )

    def _text(self, table: bytes, offset: int) -> str:
        end = table.find(b"\0", offset)
        if end < 0:
            raise self._cut_off()
        return table[offset:end].decode(errors="replace")

    def _slice(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise self._cut_off()
        return self._data[offset : offset + size]

    def _cut_off(self) -> ArtifactCorrupt:
        return ArtifactCorrupt(f"{self._what} is cut off or damaged")
