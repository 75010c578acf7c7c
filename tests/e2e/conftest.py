"""One stack for each test, and one that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.stack import Stack


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    own = Stack(tmp_path)
    yield own
    own.end()


@pytest.fixture(scope="module")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    own = Stack(tmp_path_factory.mktemp("stack"))
    yield own
    own.end()
