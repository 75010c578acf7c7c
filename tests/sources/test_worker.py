import asyncio
import threading

import pytest

from boundby.sources.worker import BusyError, Worker


async def test_a_call_is_made_in_another_thread() -> None:
    worker = Worker("test-worker")

    name = await worker.run(lambda: threading.current_thread().name, 5.0)

    assert name == "test-worker"
    worker.stop()


async def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    worker = Worker("test-worker")

    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0, 5.0)

    worker.stop()


async def test_a_call_that_hangs_is_given_up_at_its_deadline() -> None:
    worker, gate = Worker("test-worker"), threading.Event()

    with pytest.raises(TimeoutError):
        await worker.run(gate.wait, 0.01)

    gate.set()
    worker.stop()


async def test_while_a_call_hangs_further_ones_are_refused_and_no_thread_is_added() -> None:
    worker, gate = Worker("test-worker"), threading.Event()
    with pytest.raises(TimeoutError):
        await worker.run(gate.wait, 0.01)

    for _ in range(20):
        with pytest.raises(BusyError):
            await worker.run(int, 5.0)

    assert [thread.name for thread in threading.enumerate()].count("test-worker") == 1
    gate.set()
    worker.stop()


async def test_after_a_hung_call_came_back_the_worker_works_again() -> None:
    worker, gate = Worker("test-worker"), threading.Event()
    with pytest.raises(TimeoutError):
        await worker.run(gate.wait, 0.01)
    gate.set()
    while worker.busy:  # noqa: ASYNC110  a thread clears it
        await asyncio.sleep(0)

    assert await worker.run(lambda: 7, 5.0) == 7
    worker.stop()
