"""One hypothesis profile for all (these machines are slow at whim), and golden files."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "boundby", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("boundby")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regen", action="store_true", help="rewrite golden files, and fail so that they are read"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a whole artefact with its golden file; --regen rewrites it."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--regen"):
            file.write_text(text, encoding="utf-8")
            pytest.fail(f"rewrote {name}: read it, then run without --regen")
        assert text == file.read_text(encoding="utf-8"), "make regen, and read what changed"

    return compare
