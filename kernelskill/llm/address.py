"""Where a model is served: `NAME` or `NAME@URL`, checked before anything is sent."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from kernelskill.errors import UsageError
from kernelskill.schema.base import Record

DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
_AT_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_URL_WITHOUT_SCHEME = re.compile(r"@(localhost|\[[0-9a-fA-F:]+\]|[\w.-]+:\d+)(/|$|:)")
_HOME_SUFFIXES = (".local", ".lan", ".internal", ".home.arpa", ".localhost")


class Address(Record):
    """A model and its server."""

    model: str
    url: str

    @property
    def host(self) -> str:
        """The server's name, in lower case."""
        return urlsplit(self.url).hostname or ""

    @property
    def at_home(self) -> bool:
        """Whether the server is on this machine or in a private network."""
        host = self.host
        try:
            return not ipaddress.ip_address(host).is_global
        except ValueError:
            return "." not in host or host.endswith(_HOME_SUFFIXES)

    @property
    def on_this_machine(self) -> bool:
        """Whether the server is reached without a network, so that no proxy lies between."""
        try:
            return self.url.startswith("http://") and ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.url.startswith("http://") and self.host == "localhost"


def parse_address(text: str, environment: Mapping[str, str]) -> Address:
    """Return the address that `NAME` or `NAME@URL` means.

    Without a URL, `OPENAI_BASE_URL` is used, and without that the address of OpenAI.

    Raises:
        UsageError: The name is missing or the URL is none that a model can be served at.
    """
    model, _, url = text.partition("@") if not text else _split(text)
    if not model.strip() or any(ord(character) < 33 for character in model):
        raise UsageError(
            f"'openai:{text}' names no model" if "@" not in text else "the model before the URL has no name",
            remedy="write openai:NAME or openai:NAME@URL, for example openai:llama3@http://localhost:11434/v1",
        )
    if url:
        return Address(model=model, url=_checked(url, "the model's URL"))
    return Address(
        model=model, url=_checked(environment.get(URL_VARIABLE, "").strip() or DEFAULT_URL, URL_VARIABLE)
    )


def _split(text: str) -> tuple[str, str, str]:
    match = _AT_URL.search(text)
    if match:
        return text[: match.start()], "@", text[match.end() :]
    if "://" in text or _URL_WITHOUT_SCHEME.search(text):
        raise UsageError(
            "the model's URL is no http or https URL",
            remedy="begin it with http:// or https://, as in NAME@http://host:port/v1",
        )
    return text, "", ""


def _checked(url: str, origin: str) -> str:
    """Return the URL without a closing slash; one that may hold a secret is not shown."""
    try:
        parts = urlsplit(url)
        port_is_wrong = parts.port == 0
    except ValueError:
        raise UsageError(
            f"{origin} cannot be read as a URL", remedy="write for example http://localhost:8000/v1"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{origin} holds a user name or password", remedy="put the key into OPENAI_API_KEY")
    if parts.query or parts.fragment:
        raise UsageError(f"{origin} has a part after '?' or '#'", remedy="give the base URL alone, up to /v1")
    if not _is_usable(parts) or port_is_wrong:
        raise UsageError(
            f"{origin} {url!r} is no http or https URL", remedy="write for example http://localhost:8000/v1"
        )
    return url.rstrip("/")


def _is_usable(parts: SplitResult) -> bool:
    clean = all(32 < ord(character) < 127 for character in parts.geturl())
    return parts.scheme in ("http", "https") and bool(parts.hostname) and clean
