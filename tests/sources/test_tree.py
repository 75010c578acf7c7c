import os
from pathlib import Path

import pytest

from boundby.sources.tree import Tree
from process_tree import write


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    write(tmp_path / "jail" / "models" / "config.json", "inside")
    write(tmp_path / "outside.json", "outside")
    return Tree(tmp_path)


def test_a_relative_link_is_followed_inside(tree: Tree) -> None:
    (tree.root / "jail" / "link").symlink_to("models/config.json")

    assert tree.inside("/jail", "/link", 100) == b"inside"


@pytest.mark.parametrize("target", ["/models", "../../models", "/link/../models"])
def test_an_absolute_or_climbing_link_stays_inside(target: str, tree: Tree) -> None:
    (tree.root / "jail" / "link").symlink_to("/models")
    (tree.root / "jail" / "other").symlink_to(target)

    assert tree.inside("/jail", "/other/config.json", 100) == b"inside"


@pytest.mark.parametrize("target", ["../outside.json", "/../outside.json"])
def test_a_link_that_leads_out_finds_nothing(target: str, tree: Tree) -> None:
    (tree.root / "jail" / "link").symlink_to(target)

    with pytest.raises(FileNotFoundError):
        tree.inside("/jail", "/link", 100)


def test_links_in_a_circle_are_an_error(tree: Tree) -> None:
    (tree.root / "jail" / "a").symlink_to("b")
    (tree.root / "jail" / "b").symlink_to("a")

    with pytest.raises(OSError, match="Too many levels"):
        tree.inside("/jail", "/a", 100)


def test_a_file_too_large_is_an_error_and_not_half_a_file(tree: Tree) -> None:
    with pytest.raises(OSError, match="too large"):
        tree.inside("/jail", "/models/config.json", 5)


def test_a_pipe_in_a_file_s_place_is_refused_without_waiting(tree: Tree) -> None:
    os.mkfifo(tree.root / "jail" / "pipe")

    with pytest.raises(OSError, match="not a regular file"):
        tree.inside("/jail", "/pipe", 100)


def test_a_long_file_is_cut(tree: Tree) -> None:
    assert tree.data("/outside.json", most=3) == b"out"
