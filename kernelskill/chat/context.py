"""What a command has to work with: the session, where answers go, and whoever can be asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernelskill.chat.output import Output
from kernelskill.chat.registry import Commands

if TYPE_CHECKING:
    from kernelskill.session import Session


@dataclass
class ChatContext:
    """One chat. Commands ask the session and show what it says; they decide nothing."""

    session: Session
    out: Output
    commands: Commands
    go_on: Callable[[str], bool]
    """Asked after Ctrl-C, when the work has stopped: given where, says whether it goes on."""
    folder: Path = field(default_factory=Path.cwd)
    """Where the names of files begin."""

    def working(self, text: str) -> AbstractContextManager[None]:
        """Show that something long goes on."""
        shown: AbstractContextManager[None] = self.out.working(text)
        return shown
