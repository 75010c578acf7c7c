import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from fake_nvml.stage import build

FIXTURES = Path(__file__).parent.parent / "fixtures"

settings.register_profile("slow machines", deadline=None)
settings.load_profile("slow machines")


@pytest.fixture(scope="session")
def stored() -> Callable[[str], str]:
    """Read a stored page by its folder and name."""

    def read(name: str) -> str:
        return gzip.decompress((FIXTURES / f"{name}.prom.gz").read_bytes()).decode()

    return read


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fake NVML library."""
    return build(tmp_path_factory.mktemp("nvml"))
