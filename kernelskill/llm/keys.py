"""Keys of model servers: only from the environment or a keyring, and never in anything that is written."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from kernelskill.errors import ConfigError

KEY_VARIABLES = ("KERNELSKILL_API_KEY", "OPENAI_API_KEY")
"""Where a key is looked for, the first that is set wins."""
KEYRING_SERVICE = "kernelskill"
"""The keyring entry's service; its user name is the host of the server."""
_WINDOW = 8
"""So many characters of a key in a row are taken out of messages."""
_LONG = 16
"""A key as long as this is taken out of answers too; shorter ones are placeholders like `EMPTY`."""
_MARK = "[key]"


class Key:
    """A secret that shows itself only to who calls `reveal`."""

    def __init__(self, secret: str, origin: str) -> None:
        self._secret = secret
        self.origin = origin

    def reveal(self) -> str:
        """Return the secret, for the one header that carries it."""
        return self._secret

    def __repr__(self) -> str:
        return f"Key from {self.origin}"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

    def clean_message(self, text: str) -> str:
        """Return a text for people with every piece of the key taken out."""
        if len(self._secret) < _WINDOW:
            return text.replace(self._secret, _MARK) if self._secret else text
        pieces = {self._secret[i : i + _WINDOW] for i in range(len(self._secret) - _WINDOW + 1)}
        hidden = bytearray(len(text))
        for start in range(len(text) - _WINDOW + 1):
            if text[start : start + _WINDOW] in pieces:
                hidden[start : start + _WINDOW] = b"\1" * _WINDOW
        shown: list[str] = []
        for position, character in enumerate(text):
            if not hidden[position]:
                shown.append(character)
            elif position == 0 or not hidden[position - 1]:
                shown.append(_MARK)
        return "".join(shown)

    def clean_answer(self, text: str) -> str:
        """Return a model's answer without the key, should a server echo it."""
        return text.replace(self._secret, _MARK) if len(self._secret) >= _LONG else text


NO_KEY = Key("", "nowhere")


def find_key(host: str, environment: Mapping[str, str]) -> Key:
    """Return the key for a server, or `NO_KEY`: servers at home need none.

    Raises:
        ConfigError: A variable is set to something that is no key; its value is not shown.
    """
    for name in KEY_VARIABLES:
        secret = environment.get(name, "").strip()
        if secret:
            return _checked(secret, name)
    secret = (_from_keyring(host) or "").strip()
    return _checked(secret, "the keyring") if secret else NO_KEY


def _checked(secret: str, origin: str) -> Key:
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigError(
            f"{origin} holds spaces or characters that no key has", remedy="set it to the key alone"
        )
    return Key(secret, origin)


def _from_keyring(host: str) -> str | None:
    """Ask the keyring, where the package is installed and a keyring is open."""
    try:
        keyring = importlib.import_module("keyring")
        errors = importlib.import_module("keyring.errors")
    except ImportError:
        return None
    try:
        found = keyring.get_password(KEYRING_SERVICE, host)
    except (errors.KeyringError, RuntimeError, OSError, ImportError, AttributeError, ValueError):
        return None
    return str(found) if found else None
