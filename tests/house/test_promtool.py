"""promtool reads what we ship for Prometheus: recorded pages and rule files."""

import shutil
import subprocess

import pytest

from house.repository import ROOT, text, tracked

pytestmark = pytest.mark.e2e

FILES = {str(path.relative_to(ROOT)): path for path in tracked()}
PAGES = [name for name in FILES if name.startswith("tests/golden/") and name.endswith(".prom")]
RULES = [
    name
    for name in FILES
    if name.endswith((".yaml", ".yml"))
    and name.startswith(("rules/", "deploy/prometheus/"))
    and '"groups"' in text(FILES[name]).replace("groups:", '"groups"')
    and not name.endswith(("_test.yaml", "_test.yml"))
]


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (apt install prometheus)")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_golden_page_passes_the_lint_of_metrics(promtool: str, name: str) -> None:
    run = subprocess.run(  # noqa: S603  promtool on a file of ours
        [promtool, "check", "metrics"],
        input=text(FILES[name]), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_file_is_one(promtool: str, name: str) -> None:
    run = subprocess.run(  # noqa: S603  promtool on a file of ours
        [promtool, "check", "rules", FILES[name]], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
