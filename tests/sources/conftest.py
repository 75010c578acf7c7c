import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

FIXTURES = Path(__file__).parent.parent / "fixtures"

settings.register_profile("slow machines", deadline=None)
settings.load_profile("slow machines")


@pytest.fixture(scope="session")
def stored() -> Callable[[str], str]:
    """Read a stored page by its folder and name."""

    def read(name: str) -> str:
        return gzip.decompress((FIXTURES / f"{name}.prom.gz").read_bytes()).decode()

    return read
