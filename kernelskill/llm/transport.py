"""The HTTP client under the model client: no redirects, and an end to answers that never end."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2

LARGEST_ANSWER = 16 << 20
"""Bytes of one response, keep-alive lines included."""


class _Bounded(httpx2.SyncByteStream):
    """A response's body that ends with an error when it takes too long or grows too large."""

    def __init__(self, inner: httpx2.SyncByteStream, seconds: float, request: httpx2.Request) -> None:
        self._inner = inner
        self._seconds = seconds
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        deadline = time.monotonic() + self._seconds
        size = 0
        for part in self._inner:
            size += len(part)
            if size > LARGEST_ANSWER:
                raise httpx2.ReadError("the answer does not end", request=self._request)
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout("the answer takes too long", request=self._request)
            yield part

    def close(self) -> None:
        self._inner.close()


def open_client(
    *, connect_s: float, silence_s: float, answer_s: float, parallel: int, surroundings: bool
) -> httpx2.Client:
    """Return a client whose requests end.

    Args:
        connect_s: Longest wait for a connection.
        silence_s: Longest wait for the next bytes.
        answer_s: Longest time for a whole answer.
        parallel: Connections at once.
        surroundings: Whether the environment's proxies and certificates count.
    """

    def bound(response: httpx2.Response) -> None:
        inner = response.stream
        if isinstance(inner, httpx2.SyncByteStream):
            response.stream = _Bounded(inner, answer_s, response.request)

    return httpx2.Client(
        timeout=httpx2.Timeout(silence_s, connect=connect_s),
        limits=httpx2.Limits(max_connections=parallel, max_keepalive_connections=parallel),
        follow_redirects=False,
        trust_env=surroundings,
        event_hooks={"response": [bound]},
    )
