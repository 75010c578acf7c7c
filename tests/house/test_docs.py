"""What a page written by hand names is there: metrics, limits, commands, options, files."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from boundby import __version__
from boundby.app import cli
from boundby.app.config import SettingsError, load
from boundby.app.reference.commands import options, subcommands
from boundby.core.report import SCOPES
from boundby.sinks.catalogue import catalogue
from boundby_rules import LIMITS
from house.repository import ROOT, code_of, prose, text, toml_of, tracked

NAMES = {limit.name for limit in LIMITS}
FAMILIES = {family.name for family in catalogue(tuple(NAMES), __version__)}
COMMANDS = subcommands(cli.parser())
PAGES = {str(path.relative_to(ROOT)): path for path in prose()}
MADE_BY_RULES = re.compile(r"^(engine|fleet|model|namespace|gpu|instance|limit)\w*:boundby")


def commands_of(page: str) -> list[list[str]]:
    """Every `boundby ...` line or span, as words; several lines joined by backslashes are one."""
    joined = re.sub(r"\\\n\s*", " ", page)
    lines = (line.strip().removeprefix("$ ") for line in code_of(joined))
    return [shlex.split(line, comments=True) for line in lines if line.startswith("boundby ")]


@pytest.mark.parametrize("name", PAGES)
def test_every_metric_named_is_published(name: str) -> None:
    words = re.findall(r"\bboundby_[a-z0-9_]+", text(PAGES[name]))
    not_ours = {"boundby_rules"}

    assert set(words) - FAMILIES - not_ours == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_limit_in_a_selector_exists(name: str) -> None:
    named = re.findall(r'\blimit=~?"([^"]+)"', text(PAGES[name]))

    assert {limit for one in named for limit in one.split("|")} - NAMES == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_scope_in_a_selector_exists(name: str) -> None:
    assert set(re.findall(r'\bscope="([^"]+)"', text(PAGES[name]))) - set(SCOPES) == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_command_and_option_exists(name: str) -> None:
    wrong = []
    for words in commands_of(text(PAGES[name])):
        command = words[1]
        if command.isupper() or command.startswith("-"):
            continue
        if command not in COMMANDS:
            wrong.append(" ".join(words))
            continue
        known = {
            option for action in options(COMMANDS[command]) for option in action.option_strings
        }
        wrong += [f"{command} {w}" for w in words if w.startswith("--") and w not in known]

    assert wrong == []


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_settings_loads(name: str, tmp_path: Path) -> None:
    for number, block in enumerate(toml_of(text(PAGES[name]))):
        tomllib.loads(block)
        file = tmp_path / f"{number}.toml"
        file.write_text(block, encoding="utf-8")
        try:
            load(LIMITS, file=file)
        except SettingsError as error:
            pytest.fail(str(error))


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file(name: str) -> None:
    page = PAGES[name]
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(page))
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]

    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_make_target_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", text(ROOT / "Makefile"), re.MULTILINE))
    named = {
        m for line in code_of(text(PAGES[name])) for m in re.findall(r"^make ([a-z0-9]+)", line)
    }

    assert named - targets == set()


@pytest.mark.parametrize("name", PAGES)
def test_prose_has_one_sentence_a_line(name: str) -> None:
    plain = re.sub(r"^```.*?^```", "", text(PAGES[name]), flags=re.DOTALL | re.MULTILINE)
    plain = re.sub(r"`[^`\n]*`", "code", plain)
    lines = [line for line in plain.splitlines() if not line.startswith(("|", "<", "* ["))]

    assert [line for line in lines if re.search(r"[a-z)][.?!] [A-Z]", line)] == []


def test_the_readme_lists_every_limit() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", text(ROOT / "README.md"), re.MULTILINE)

    assert set(rows) >= NAMES


ELSEWHERE = (
    r"/(?:work|root|home|Users)/[\w.-]+/",
    r"\b(?:files\.python" + r"hosted|py" + r"pi)\.org\b",
    r"\bregistry\.(?:npm" + r"js|yarn" + r"pkg)\b",
    r"\b(?:deb|security|ftp)\.deb" + r"ian\.org\b",
    r"\bproxy\.gol" + r"ang\.org\b",
)
"""Paths of one machine, and hosts of package registries."""


IN_IMAGES = {"/root/.cache/"}
"""Paths of the containers that engines run in."""


@pytest.mark.parametrize("pattern", ELSEWHERE)
def test_no_file_names_a_machine_or_a_registry(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked()
        if path.name != "LICENSE"
        and (match := re.search(pattern, text(path)))
        and match[0] not in IN_IMAGES
    ]

    assert found == []
