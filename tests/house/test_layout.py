"""The shape of the house: sizes and names of modules, floors, entry points."""

import subprocess
import sys
from importlib.metadata import entry_points, version

import pytest

from house.repository import ROOT, text, tracked

MOST_LINES = 400

LONGER: dict[str, str] = {
    "exporter/boundby/core/estimate.py": "one estimate, told in the order in which it is made",
}
"""Modules past the mark, each with its reason."""

HABITS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "handler"}
"""Names that say what a module does by habit, and not what it has."""

MODULES = {
    str(path.relative_to(ROOT)): path
    for path in tracked()
    if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ("exporter", "rules")
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_or_has_a_reason(name: str) -> None:
    lines = text(MODULES[name]).count("\n")

    assert lines <= MOST_LINES or name in LONGER, f"{lines} lines: which two things does it hold?"


@pytest.mark.parametrize("name", LONGER)
def test_a_reason_for_length_is_still_needed(name: str) -> None:
    assert text(ROOT / name).count("\n") > MOST_LINES


def test_modules_are_named_for_what_they_have() -> None:
    assert {name for name, path in MODULES.items() if path.stem in HABITS} == set()


@pytest.mark.parametrize("package", ["exporter/boundby", "rules/boundby_rules"])
def test_the_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_our_limits_come_in_by_the_door_that_strangers_use() -> None:
    from boundby_rules import LIMITS  # noqa: PLC0415  beside the door that is compared with it

    assert [point.load() for point in entry_points(group="boundby.limits", name="boundby")] == [
        LIMITS
    ]


def test_the_module_and_the_command_are_the_same_program() -> None:
    (command,) = entry_points(group="console_scripts", name="boundby")
    run = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-m", "boundby", "--version"], capture_output=True, text=True, check=True
    )

    assert run.stdout == f"boundby {version('boundby')}\n"
    assert callable(command.load())


def test_imports_only_go_down_and_the_core_does_no_io() -> None:
    run = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-c", "from importlinter.cli import lint_imports; exit(lint_imports())"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout
