"""The beat against sources that work, fail, raise and hang; the clock is the test's."""

import asyncio
from collections.abc import Callable

import pytest

from boundby.app.loop import Given, Loop
from boundby.core.parts import EnginePart, GpuPart, Snapshot
from boundby.core.report import Report
from boundby.sources.base import SourceError

ENGINE = EnginePart(engine="0", model_name="m", kind="vllm")
GPU = GpuPart(gpu="GPU-1")


class TurnedClock:
    """A clock that moves when it is slept on."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class FakeFeed:
    """A feed that does what it is told."""

    deadline_seconds = 0.05

    def __init__(self, name: str, act: Callable[[], Given]) -> None:
        self.name = name
        self.act = act
        self.reads = 0
        self.closed = False

    async def read(self) -> Given:
        self.reads += 1
        return self.act()

    async def close(self) -> None:
        self.closed = True


class HangingFeed(FakeFeed):
    """A feed whose read ends when its deadline does, or never."""

    def __init__(self, name: str, *, heeds_deadline: bool) -> None:
        super().__init__(name, Given)
        self.deadline_seconds = 0.01 if heeds_deadline else 60.0

    async def read(self) -> Given:
        self.reads += 1
        await asyncio.Event().wait()
        return Given()


class Watcher:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.seen: list[Snapshot] = []

    def observe(self, snapshot: Snapshot) -> Report:
        self.seen.append(snapshot)
        return Report(at=snapshot.t, window_seconds=30.0, sources=snapshot.sources)


def given() -> Given:
    return Given(engines=(ENGINE,), detail="fine")


def refused() -> Given:
    name = "dcgm"
    raise SourceError(name, "no metrics", "Is it up?")


def broken() -> Given:
    msg = "a fault"
    raise RuntimeError(msg)


async def beats(*feeds: FakeFeed, count: int = 1, beat: float = 0.1) -> list[Snapshot]:
    watcher = Watcher()
    loop = Loop(feeds, watcher, TurnedClock(), beat_seconds=beat, publish=lambda _: None)
    await loop.run(count)
    return watcher.seen


async def test_every_source_is_read_each_beat() -> None:
    one, other = FakeFeed("engine", given), FakeFeed("dcgm", lambda: Given(gpus=(GPU,)))

    seen = await beats(one, other, count=3)

    assert [len(s.engines) + len(s.gpus) for s in seen] == [2, 2, 2]
    assert (one.reads, other.reads) == (3, 3)


@pytest.mark.parametrize(
    ("act", "detail"),
    [
        pytest.param(refused, "no metrics. Is it up?", id="a refusal"),
        pytest.param(broken, "RuntimeError: a fault", id="a fault of the source's own"),
    ],
)
async def test_a_failing_source_darkens_its_own_facts_alone(
    act: Callable[[], Given], detail: str
) -> None:
    (seen,) = await beats(FakeFeed("engine", given), FakeFeed("dcgm", act))

    up = {state.source: (state.up, state.detail) for state in seen.sources}
    assert up == {"engine": (True, "fine"), "dcgm": (False, detail)}
    assert seen.engines == (ENGINE,)


async def test_a_source_past_its_deadline_is_down() -> None:
    (seen,) = await beats(HangingFeed("nvml", heeds_deadline=True))

    assert seen.sources[0].detail.startswith("no answer within 0.01 s")


async def test_a_source_still_busy_is_not_asked_again() -> None:
    hanging = HangingFeed("nvml", heeds_deadline=False)

    seen = await beats(hanging, FakeFeed("engine", given), count=3, beat=0.02)

    assert hanging.reads == 1
    assert [s.engines for s in seen] == [(ENGINE,)] * 3
    assert "still reading" in seen[-1].sources[0].detail


async def test_a_source_that_was_up_shows_its_age_when_it_is_down() -> None:
    clock = TurnedClock()
    watcher = Watcher()
    answers = iter([given, refused, refused])
    feed = FakeFeed("engine", lambda: next(answers)())
    loop = Loop([feed], watcher, clock, beat_seconds=10.0, publish=lambda _: None)

    await loop.run(3)

    assert [s.sources[0].age_seconds for s in watcher.seen] == [0.0, 10.0, 20.0]


async def test_a_judge_that_raises_does_not_end_the_loop() -> None:
    class Raising(Watcher):
        def observe(self, snapshot: Snapshot) -> Report:
            super().observe(snapshot)
            msg = "a bug"
            raise ValueError(msg)

    published: list[Report] = []
    watcher = Raising()
    loop = Loop(
        [FakeFeed("engine", given)], watcher, TurnedClock(), beat_seconds=1.0,
        publish=published.append,
    )  # fmt: skip

    await loop.run(2)

    assert len(watcher.seen) == 2
    assert [r.sources[-1].detail for r in published] == ["ValueError: a bug"] * 2
    assert not published[0].ready


async def test_when_nobody_reads_the_reports_any_more_the_loop_ends() -> None:
    def gone(_: Report) -> None:
        raise BrokenPipeError

    loop = Loop([], Watcher(), TurnedClock(), beat_seconds=1.0, publish=gone)

    with pytest.raises(BrokenPipeError):
        await loop.run(2)


async def test_gpus_that_cannot_be_told_apart_are_left_out_and_that_is_said() -> None:
    watcher = Watcher()
    loop = Loop(
        [FakeFeed("dcgm", lambda: Given(gpus=(GPU,)))], watcher, TurnedClock(), beat_seconds=1.0,
        publish=lambda _: None, pair=lambda _gpus, _given: ((), "which is ours is not known"),
    )  # fmt: skip

    await loop.run(1)

    assert watcher.seen[0].gpus == ()
    assert watcher.seen[0].sources[-1].detail == "which is ours is not known"


async def test_a_clock_set_back_does_not_turn_time_back() -> None:
    class SetBack(TurnedClock):
        ticks = 0.0

        def monotonic(self) -> float:
            return self.ticks

        async def sleep(self, seconds: float) -> None:
            self.ticks += seconds
            self.time += seconds if self.ticks != 2.0 else -3600.0
            await asyncio.sleep(0)

    watcher = Watcher()
    loop = Loop(
        [FakeFeed("engine", given)], watcher, SetBack(), beat_seconds=1.0, publish=lambda _: None
    )

    await loop.run(4)

    assert [s.t for s in watcher.seen] == [1000.0, 1001.0, 1002.0, 1003.0]


async def test_feeds_are_closed_at_the_end() -> None:
    feed = FakeFeed("engine", given)

    await beats(feed)

    assert feed.closed


async def test_reads_are_kept_for_a_recording_errors_too() -> None:
    kept: list[tuple[str, object]] = []
    answers = iter([given, refused])
    feed = FakeFeed("engine", lambda: next(answers)())
    loop = Loop(
        [feed], Watcher(), TurnedClock(), beat_seconds=1.0, publish=lambda _: None,
        keep=lambda _t, source, what: kept.append((source, what)),
    )  # fmt: skip

    await loop.run(2)

    assert kept == [("engine", given()), ("engine", "no metrics. Is it up?")]
