"""UserFile: a file of the user's that is about to be replaced, in the style that it has."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kernelskill.errors import UsageError
from kernelskill.schema.base import sha256_bytes
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import Opened

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class UserFile:
    """What stands in a file and what will."""

    path: Path
    name: str
    """As the candidate calls it."""
    before: str | None
    """Its text, None where there is no such file yet."""
    digest: str
    """SHA-256 of its bytes; empty where there is none."""
    after: str
    """The new text, with the line ends of the old one."""
    is_marked: bool
    """Whether it begins with a byte order mark."""

    @property
    def data(self) -> bytes:
        """The bytes that will be written."""
        return (_MARK if self.is_marked else b"") + self.after.encode()

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def with_text(self, text: str) -> UserFile:
        """Return the file with another new text."""
        return replace(self, after=_in_style(text, self.before))

    def require_unchanged(self, known: str | None) -> None:
        """Refuse a file that somebody changed since this run read it.

        Args:
            known: SHA-256 of its bytes as the run knows them; None where it never read the file.

        Raises:
            UsageError: It was changed.
        """
        if known is not None and self.before is not None and self.digest != known:
            raise UsageError(
                f"{str(self.path)!r} changed since it was read, so it is not overwritten",
                remedy="adopt what it holds now with pin, or export to another file",
            )

    def write(self, known: str | None) -> None:
        """Replace the file at once, unless it changed since it was looked at.

        Args:
            known: As for `require_unchanged`.

        Raises:
            UsageError: It was changed, or cannot be written.
        """
        now = read_user_file(self.path, self.name, self.after)
        now.require_unchanged(known)
        if now.digest != self.digest:
            raise UsageError(
                f"{str(self.path)!r} changed while you were asked, so it is not overwritten",
                remedy="give the command again",
            )
        # Through a link the file itself is replaced, and the link stays.
        target = Path(os.path.realpath(self.path))
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(self.data)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
        except OSError as error:
            raise UsageError(
                f"cannot write {str(self.path)!r}: {error.strerror}", remedy="export to another file"
            ) from error
        finally:
            with suppress(OSError):
                temporary.unlink()


def opened(kernel: Path, original: Candidate) -> Opened:
    """Return what is known of the user's files now.

    Args:
        kernel: The main file.
        original: What was read from it and its headers.
    """
    main = Path(os.path.normpath(Path.cwd() / kernel))
    depth = len(Path(original.main).parents) - 1
    paths = [main.parents[depth] / file.path for file in original.files]
    read = ((path, path.read_bytes()) for path in paths if path.is_file())
    return Opened(kernel=str(main), files=tuple((str(path), sha256_bytes(data)) for path, data in read))


def read_user_file(path: Path, name: str, text: str) -> UserFile:
    """Return a file with what is to stand in it.

    Args:
        path: Where it is, or will be.
        name: As the candidate calls it.
        text: What is to stand in it.

    Raises:
        UsageError: It cannot be read, or is no text.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return UserFile(path, name, None, "", text, is_marked=False)
    except OSError as error:
        raise UsageError(
            f"cannot read {str(path)!r}: {error.strerror}", remedy="export to another file"
        ) from error
    try:
        before = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            f"{str(path)!r} is no UTF-8 text, so it is not overwritten", remedy="export to another file"
        ) from None
    return UserFile(
        path, name, before, sha256_bytes(data), _in_style(text, before), is_marked=data.startswith(_MARK)
    )


def _in_style(text: str, like: str | None) -> str:
    """Return a text with the line ends that prevail in another; where they prevail already it stays as it is."""
    if like is None or "\n" not in like or _is_dos(text) is _is_dos(like):
        return text
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if _is_dos(like) else plain


def _is_dos(text: str) -> bool:
    return 2 * text.count("\r\n") > text.count("\n")
