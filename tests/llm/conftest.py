"""A server of models, one for all tests."""

from collections.abc import Iterator

import pytest

from tests.llm.asking import Server, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving() as found:
        yield found
