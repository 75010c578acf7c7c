"""A real Prometheus scrapes `boundby run`, which reads replayed pages of an engine and its GPU."""

import gzip
import json
import shutil
import subprocess
from dataclasses import dataclass

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from e2e.stack import RUNS, WATCH, Stack, free_port, get, query, until, url

pytestmark = pytest.mark.e2e

BINDING = "boundby_binding_limit == 1"


@dataclass(frozen=True, slots=True)
class Watched:
    boundby: str
    prometheus: str


def answers(prometheus: str) -> dict[str, str]:
    """The limit that binds, by scope, as Prometheus has it."""
    return {
        row["metric"]["scope"]: row["metric"]["limit"] for row in query(prometheus, BINDING)
    }  # fmt: skip


@pytest.fixture(scope="module")
def watched(shared_stack: Stack) -> Watched:
    """A full KV cache, simulated, with its GPU's rows."""
    engine, gpu = free_port(), free_port()
    shared_stack.pages("simulated-kv-full.jsonl.gz", "engine", engine)
    shared_stack.pages("simulated-kv-full.jsonl.gz", "dcgm", gpu)
    config = shared_stack.folder / "config.json"
    config.write_text(json.dumps(model_config()), encoding="utf-8")
    _, boundby = shared_stack.boundby(
        f'listen = "127.0.0.1:0"\n'
        f'[engine]\nurl = "{url(engine)}"\n'
        f'[gpu]\nurl = "{url(gpu)}"\nname = "NVIDIA H100 80GB HBM3"\n'
        f'[model]\nconfig = "{config}"\nweights_dtype = "bf16"\n'
        f"[parallelism]\ntensor = 1\n{WATCH}"
    )
    prometheus = shared_stack.prometheus({"boundby": boundby})
    until("a settled verdict", lambda: answers(prometheus).get("engine") == "kv_capacity")
    return Watched(boundby, prometheus)


def model_config() -> dict[str, object]:
    with gzip.open(RUNS / "simulated-kv-full.jsonl.gz", "rt") as file:
        return dict(json.loads(next(file))["model"]["config"])


def test_prometheus_has_the_verdict_in_each_scope(watched: Watched) -> None:
    assert answers(watched.prometheus) == {
        "engine": "kv_capacity",
        "decode": "memory_bandwidth",
        "prefill": "memory_bandwidth",
    }


def test_prometheus_finds_the_target_up_and_every_scrape_whole(watched: Watched) -> None:
    rows = query(watched.prometheus, "min_over_time(up[1m])")

    assert [float(row["value"][1]) for row in rows] == [1.0]


def test_both_sources_are_up(watched: Watched) -> None:
    rows = query(watched.prometheus, "boundby_source_up")

    up = {row["metric"]["source"]: row["value"][1] for row in rows}
    assert (up["engine"], up["dcgm"]) == ("1", "1")


def test_time_bound_is_counted_as_it_passes(watched: Watched) -> None:
    share = 'rate(boundby_limit_binding_seconds_total{scope="engine",limit="kv_capacity"}[5s])'

    def whole() -> bool:
        return any(float(row["value"][1]) > 0.8 for row in query(watched.prometheus, share))

    until("the share of time comes near 1", whole, 15)


def test_promtool_finds_nothing_wrong_with_the_page(watched: Watched) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (apt install prometheus)")
    _, page = get(f"{watched.boundby}/metrics")

    lint = subprocess.run(  # noqa: S603  promtool, with no argument from outside
        [promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )

    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")


def test_the_openmetrics_page_is_read_whole_by_a_strict_parser(watched: Watched) -> None:
    _, page = get(f"{watched.boundby}/metrics", Accept="application/openmetrics-text")

    names = {family.name for family in text_string_to_metric_families(page)}
    assert "boundby_binding_limit" in names


def test_the_front_doors_answer(watched: Watched) -> None:
    status = {
        path: get(watched.boundby + path)[0]
        for path in ("/", "/metrics", "/report.json", "/healthz", "/readyz", "/nowhere")
    }

    assert status == {
        "/": 200, "/metrics": 200, "/report.json": 200, "/healthz": 200, "/readyz": 200,
        "/nowhere": 404,
    }  # fmt: skip


def test_the_report_and_the_metrics_agree(watched: Watched) -> None:
    _, text = get(f"{watched.boundby}/report.json")

    (engine,) = json.loads(text)["engines"]
    shown = {scope: verdict["limit"] for scope, verdict in engine["verdict"].items()}
    assert shown == answers(watched.prometheus)


def test_real_vllm_pages_without_a_gpu_give_the_cache_and_no_hardware_roof(stack: Stack) -> None:
    engine = free_port()
    stack.pages("vllm-0.32.0-cpu-kv-starved.jsonl.gz", "engine", engine)
    _, boundby = stack.boundby(
        f'listen = "127.0.0.1:0"\n[engine]\nurl = "{url(engine)}"\n[gpu]\nsource = "none"\n{WATCH}'
    )
    prometheus = stack.prometheus({"boundby": boundby})

    until("the verdict", lambda: answers(prometheus).get("engine") == "kv_capacity", 25)

    assert set(answers(prometheus).values()) & {"compute", "memory_bandwidth"} == set()
