"""Input at a terminal: history, completion, several lines, and the status line below."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app_or_none
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.renderer import CPR_Support
from prompt_toolkit.styles import Style

from kernelskill.chat.statusline import status_lines

if TYPE_CHECKING:
    from kernelskill.session.records import SessionStatus

PROMPT = "kernelskill> "
CONTINUED = "...> "
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse", "bottom-toolbar.text": "fg:ansigray"})


class KeptHistory(FileHistory):
    """Lines of earlier chats; one that begins with a space is not kept, and a full disk is no trouble."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):
            path.touch(mode=0o600, exist_ok=True)
        super().__init__(str(path))

    def load_history_strings(self) -> list[str]:
        """Return the kept lines, the newest first."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Keep a line."""
        if not string.startswith(" "):
            with suppress(OSError):
                super().store_string(string)


class TerminalReader:
    """Reads from a terminal."""

    can_ask = True

    def __init__(
        self,
        history: Path,
        completer: Completer,
        status: Callable[[], SessionStatus | None],
        say: Callable[[str], None],
    ) -> None:
        self._status = status
        self._now: SessionStatus | None = None
        self._say = say
        self._session: PromptSession[str] = PromptSession(
            history=KeptHistory(history),
            completer=completer,
            complete_while_typing=False,
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=CONTINUED,
            bottom_toolbar=self._toolbar,
            style=_STYLE,
            enable_open_in_editor=False,
            reserve_space_for_menu=4,
        )
        self._questions: PromptSession[str] = PromptSession(style=_STYLE)

    def line(self) -> str | None:
        """Return what was typed, nothing where Ctrl-C took it back; None at Ctrl-D.

        Raises:
            KeyboardInterrupt: Ctrl-C at an empty prompt.
        """
        self._now = self._status()  # once: the line below is drawn at every key
        if is_dumb() or self._session.app.renderer.cpr_support is CPR_Support.NOT_SUPPORTED:
            self._say(self._toolbar())  # such a terminal has no place for a line that stays
        try:
            return self._session.prompt(PROMPT)
        except EOFError:
            return None
        except KeyboardInterrupt:
            if self._session.default_buffer.text.strip():
                return ""
            raise

    def answer(self, question: str) -> str | None:
        """Ask something; Ctrl-C and Ctrl-D are no answer."""
        try:
            return self._questions.prompt(question)
        except (EOFError, KeyboardInterrupt):
            return None

    def _toolbar(self) -> str:
        width = self._session.app.output.get_size().columns
        return "" if self._now is None else "\n".join(status_lines(self._now, width))


def is_dumb() -> bool:
    """Return whether the terminal cannot move its cursor."""
    return os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")


def leave_prompt() -> bool:
    """End a prompt that waits for input as if Ctrl-D was pressed; false where none waits."""
    app = get_app_or_none()
    if app is None or not app.is_running or app.loop is None:
        return False
    app.loop.call_soon_threadsafe(lambda: app.exit(exception=EOFError()))
    return True


def _bindings() -> KeyBindings:
    """Enter sends, Alt-Enter or a backslash at the end begins a new line."""
    keys = KeyBindings()

    @Condition
    def menu_is_closed() -> bool:
        app = get_app_or_none()
        return app is not None and app.current_buffer.complete_state is None

    @keys.add("enter", filter=menu_is_closed & ~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("enter", filter=~menu_is_closed & ~is_searching)
    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
