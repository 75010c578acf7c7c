import json
from pathlib import Path

import pytest

from boundby.sources.model_files import HUB, NoModelConfigError, model_config
from boundby.sources.tree import Tree
from process_tree import write

CONFIG = {"model_type": "llama"}
TEXT = json.dumps(CONFIG)
ROOT = "proc/7/root"


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param("/models/a", f"{ROOT}/models/a", id="in the engine's own root"),
        pytest.param("/models/a", "models/a", id="mounted at the same place here"),
        pytest.param("./a", "proc/7/cwd/a", id="from the engine's working folder"),
        pytest.param("a", "proc/7/cwd/a", id="a bare name may be a folder too"),
    ],
)
def test_a_path_leads_to_its_config(model: str, place: str, tmp_path: Path) -> None:
    write(tmp_path / place / "config.json", TEXT)

    assert model_config(Tree(tmp_path), 7, model) == CONFIG


@pytest.mark.parametrize(
    ("cache", "download_dir"),
    [(f"root/{HUB}", None), ("scratch", "/scratch")],
    ids=["the usual cache", "the folder that --download-dir names"],
)
def test_a_name_leads_into_hugging_face_s_cache(
    cache: str, download_dir: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / ROOT / cache / "models--org--model"
    write(folder / "refs/main", "abc\n")
    write(folder / "blobs/1", TEXT)
    (folder / "snapshots/abc").mkdir(parents=True)
    (folder / "snapshots/abc/config.json").symlink_to("../../blobs/1")

    assert model_config(Tree(tmp_path), 7, "org/model", download_dir) == CONFIG


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is not JSON"), ("[1]", "holds no JSON object"), (" " * (4 * 2**20 + 1), "too large")],
    ids=["half a file", "a list", "a huge file"],
)
def test_what_is_no_config_is_refused_with_a_remedy(text: str, said: str, tmp_path: Path) -> None:
    write(tmp_path / ROOT / "m/config.json", text)

    with pytest.raises(NoModelConfigError, match=rf"{said}.*set model.config"):
        model_config(Tree(tmp_path), 7, "/m")


def test_a_model_that_is_nowhere_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(NoModelConfigError, match=r"no config\.json of org/m was found; set model"):
        model_config(Tree(tmp_path), 7, "org/m")
