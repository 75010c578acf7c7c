"""What boundby says of a real vLLM whose load is known."""

import json
import os
import re
import subprocess
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from e2e.stack import BOUNDBY, WATCH, Stack, get, until
from e2e.vllm_cpu.conftest import Engines
from e2e.vllm_cpu.engine import Engine

pytestmark = [pytest.mark.e2e, pytest.mark.vllm]

ROOFS = {"compute", "memory_bandwidth", "interconnect", "power", "thermal"}
"""What no page of an engine can show by itself, on a machine with no GPU."""

CROWD = {"concurrency": 12, "prompt": 32, "output": 100}
"""Three times what the capped engine runs at once."""

LONG_ANSWERS = {"concurrency": 24, "prompt": 100, "output": 300}

TOLD = ("--max-num-seqs", "4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An engine under a load, what boundby is told of it, and what it may answer.

    `alone` is boundby with the engine's page and nothing else, as from another machine.
    """

    name: str
    engine: str = "capped"
    load: dict[str, int] | None = None
    flags: tuple[str, ...] = ()
    alone: bool = False
    limits: set[str] = field(default_factory=set)


SCENES = (
    Scene(name="nobody asks", limits={"demand"}),
    Scene(
        name="one client asks",
        load={"concurrency": 1, "prompt": 32, "output": 100},
        limits={"demand"},
    ),
    Scene(name="the cap is told and full", load=CROWD, flags=TOLD, limits={"batch_slots"}),
    Scene(name="the cap is on the command line and full", load=CROWD, limits={"batch_slots"}),
    Scene(name="the cap is out of sight and full", load=CROWD, alone=True, limits={"batch_slots"}),
    Scene(
        name="the KV cache is full", engine="starved", load=LONG_ANSWERS, limits={"kv_capacity"}
    ),
    Scene(
        name="long prompts come one by one",
        load={"concurrency": 1, "prompt": 1200, "output": 4},
        limits={"demand", "unknown"},
    ),
)


def loaded(engine: Engine, load: dict[str, int] | None) -> Any:
    return engine.load(**load) if load else nullcontext()


def full(engine: Engine, clients: int) -> None:
    """Wait until nearly every client's request is at the engine."""
    until(
        f"{clients} clients are served",
        lambda: engine.running() + engine.waiting() >= 0.7 * clients,
        60,
    )


def boundby(*arguments: str | Path, alone: bool = False) -> tuple[int, str]:
    """Exit code and output of a command that ends by itself."""
    sight = {"BOUNDBY_HOST_ENABLED": "false"} if alone else {}
    run = subprocess.run(  # noqa: S603  our own command
        [*BOUNDBY, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=180, env={**os.environ, **sight},
    )  # fmt: skip
    assert "Traceback" not in run.stderr, run.stderr
    return run.returncode, run.stdout


@pytest.fixture(scope="module")
def reports(engines: Engines) -> dict[str, tuple[int, dict[str, Any]]]:
    """What `boundby once` said of each scene, with its exit code."""
    said = {}
    for scene in sorted(SCENES, key=lambda scene: scene.engine):
        engine = engines(scene.engine)
        with loaded(engine, scene.load):
            full(engine, (scene.load or {}).get("concurrency", 0))
            code, text = boundby(
                "once",
                "--engine",
                engine.url,
                "--seconds",
                "15",
                "--output",
                "json",
                *scene.flags,
                alone=scene.alone,
            )
        said[scene.name] = (code, json.loads(text))
    return said


def each_scene(scenes: tuple[Scene, ...] = SCENES) -> Any:
    return pytest.mark.parametrize("scene", scenes, ids=lambda scene: scene.name)


Reports = dict[str, tuple[int, dict[str, Any]]]


@each_scene()
def test_the_page_of_a_real_vllm_is_read(reports: Reports, scene: Scene) -> None:
    _, report = reports[scene.name]

    (source,) = [source for source in report["sources"] if source["source"] == "engine"]
    (engine,) = report["engines"]
    assert source["up"], source["detail"]
    assert (engine["engine"], engine["kind"], engine["model"]) == ("0", "vllm", "tiny")


@each_scene()
def test_the_load_is_answered_with_what_holds_it(reports: Reports, scene: Scene) -> None:
    code, report = reports[scene.name]

    (engine,) = report["engines"]
    limit = engine["verdict"]["engine"]["limit"]
    assert limit in scene.limits, engine["story"]
    assert code == {"demand": 0, "unknown": 4}.get(limit, 3)


@each_scene()
def test_no_roof_of_a_gpu_is_claimed_where_none_was_read(reports: Reports, scene: Scene) -> None:
    _, report = reports[scene.name]

    claims = {
        (scope, verdict["limit"], verdict["confidence"])
        for engine in report["engines"]
        for scope, verdict in engine["verdict"].items()
        if verdict["limit"] in ROOFS and verdict["confidence"] >= 0.9
    }
    assert claims == set()


@each_scene()
def test_the_time_of_an_engine_is_all_accounted_for(reports: Reports, scene: Scene) -> None:
    _, report = reports[scene.name]

    (engine,) = report["engines"]
    assert sum(engine["time"].values()) == pytest.approx(1.0, abs=1e-3)


def test_a_cap_out_of_sight_is_said_to_be_inferred(reports: Reports) -> None:
    _, report = reports["the cap is out of sight and full"]

    (engine,) = report["engines"]
    assert engine["signals"]["batch_slots_sequences"] == 4
    assert [note for note in engine["notes"] if note.startswith("batch_slots_sequences: inferred")]


@pytest.mark.parametrize(
    "scene", ["the cap is told and full", "the cap is on the command line and full"]
)
def test_a_cap_that_is_known_is_not_called_inferred(reports: Reports, scene: str) -> None:
    _, report = reports[scene]

    (engine,) = report["engines"]
    assert engine["signals"]["batch_slots_sequences"] == 4
    assert [note for note in engine["notes"] if "batch_slots" in note] == []


def test_a_recording_of_a_real_engine_replays_to_the_same_answer(
    engines: Engines, tmp_path: Path
) -> None:
    engine = engines("capped")
    file = tmp_path / "capped.jsonl.gz"

    with engine.load(**CROWD):
        full(engine, 12)
        code, text = boundby(
            "record", "--engine", engine.url, "--seconds", "12", "--out", file, *TOLD
        )
    assert code == 0, text
    code, text = boundby("replay", file, "--output", "json")

    assert code == 0
    (judged,) = json.loads(text)["summary"]["engines"]
    assert (judged["kind"], judged["verdict"]["engine"]["limit"]) == ("vllm", "batch_slots")


@dataclass(frozen=True, slots=True)
class Watched:
    """A `boundby run` that watches a real engine."""

    where: str

    def page(self) -> str:
        return get(f"{self.where}/metrics")[1]

    def at_one(self, name: str, label: str) -> str | None:
        """The label's value in the one row of a metric that is 1."""
        for row in re.findall(rf"^{name}{{(.*)}} 1\.0$", self.page(), re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', row))
            if labels.get("scope", "engine") == "engine":
                return labels[label]
        return None

    def limit(self) -> str | None:
        return self.at_one("boundby_binding_limit", "limit")

    def state(self) -> str | None:
        return self.at_one("boundby_engine_state", "state")

    def up(self) -> bool:
        return 'boundby_source_up{source="engine"} 1.0' in self.page()


def watched(stack: Stack, engine: Engine) -> Watched:
    settings = (
        f'listen = "127.0.0.1:0"\n[engine]\nurl = "{engine.url}"\n'
        f'[gpu]\nsource = "none"\n[limits]\nmax_num_seqs = 4\n{WATCH}'
    )
    return Watched(stack.boundby(settings)[1])


def test_the_answer_follows_the_load_as_it_comes_and_goes(engines: Engines, stack: Stack) -> None:
    engine = engines("capped")
    seen = watched(stack, engine)

    until("idle is demand", lambda: seen.limit() == "demand", 30)
    with engine.load(**CROWD):
        until("a crowd is batch_slots", lambda: seen.limit() == "batch_slots", 60)
    until("idle is demand again", lambda: seen.limit() == "demand", 60)
    assert seen.up()


def test_an_engine_that_stops_stepping_is_stalled_and_not_idle(
    engines: Engines, stack: Stack
) -> None:
    engine = engines("capped")
    seen = watched(stack, engine)

    with engine.load(**CROWD):
        until("a crowd is batch_slots", lambda: seen.limit() == "batch_slots", 60)
        with engine.frozen():
            until("it is stalled", lambda: seen.limit() == "stalled", 40)
            assert (seen.state(), seen.up()) == ("stalled", True)
        until("it goes on", lambda: seen.limit() == "batch_slots", 60)


def test_an_engine_that_dies_is_down_and_no_answer_is_left(engines: Engines, stack: Stack) -> None:
    engine = engines("capped")
    seen = watched(stack, engine)
    until("a first answer", lambda: seen.limit() == "demand", 30)

    engine.kill()

    until("the source is down", lambda: not seen.up(), 10)
    until("no answer is left", lambda: seen.limit() is None, 15)
    assert get(f"{seen.where}/healthz")[0] == 200
