"""Generated pages are as fresh as the code they come from."""

import pytest

from boundby.app.generate import pages
from house.opening import fresh
from house.repository import ROOT, text

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    assert text(ROOT / name) == PAGES[name], "stale: make regen"


def test_a_page_is_made_for_every_limit() -> None:
    from boundby_rules import LIMITS  # noqa: PLC0415  what the page is held against

    headings = {line[3:] for line in PAGES["rules/README.md"].splitlines() if line[:3] == "## "}
    assert headings == {limit.name for limit in LIMITS}


def test_no_option_goes_without_a_word() -> None:
    rows = [line for line in PAGES["docs/cli.md"].splitlines() if line.startswith("| `")]

    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_readme_opens_with_what_the_program_prints() -> None:
    readme = text(ROOT / "README.md")

    assert fresh(readme) == readme, "stale: make regen"
