"""Real engines that the tests of a session share; one that has died is started again."""

from collections.abc import Callable, Iterator

import pytest

from e2e.vllm_cpu import model
from e2e.vllm_cpu.engine import Engine, start

SETTINGS = {
    "capped": ("--max-num-seqs", "4"),
    "starved": ("--max-num-seqs", "64", "--block-size", "32", "--num-gpu-blocks-override", "80"),
}
"""`capped` has KV cache for all of its clients, `starved` for about 40 % of what they ask."""

Engines = Callable[[str], Engine]


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("vllm")
    weightless = model.write(folder / "model")
    alive: dict[str, Engine] = {}

    def get(name: str) -> Engine:
        if name not in alive or alive[name].process.poll() is not None:
            alive[name] = start(folder, weightless, "--max-model-len", "2048", *SETTINGS[name])
        alive[name].rest()
        return alive[name]

    yield get
    for engine in alive.values():
        engine.stop()
