"""A closed loop of clients for an OpenAI-compatible server: a new request when one is done.

    load.py URL --concurrency 16 --prompt 32 --output 200 --seconds 30

Prompts are random token ids, so no two share a prefix. Lengths of prompts and answers are drawn
evenly between half and one and a half times what is said, lest all clients go in step.
`--give-up S` makes each client hang up after so many seconds. Ends after `--seconds` and says in
one JSON line what was sent.
"""

import argparse
import asyncio
import json
import random
import sys
from dataclasses import asdict, dataclass

import aiohttp

from e2e.vllm_cpu.model import SPECIAL, VOCABULARY

MODEL = "tiny"
"""The name that the engine serves its model by."""


@dataclass(slots=True)
class Sent:
    """What became of the requests."""

    sent: int = 0
    done: int = 0
    given_up: int = 0
    refused: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`concurrency` clients; mean tokens of prompts and answers; seconds until one hangs up."""

    url: str
    concurrency: int
    prompt: int
    output: int
    give_up: float | None = None


def around(mean: int, draw: random.Random) -> int:
    """A length between half and one and a half times the mean."""
    return draw.randint(mean - mean // 2, mean + mean // 2)


async def ask(session: aiohttp.ClientSession, load: Load, draw: random.Random, seen: Sent) -> None:
    """Send one request and wait for all of its answer."""
    body = {
        "model": MODEL,
        "prompt": draw.choices(range(len(SPECIAL), VOCABULARY), k=around(load.prompt, draw)),
        "max_tokens": around(load.output, draw),
        "ignore_eos": True,
        "temperature": 0.0,
    }
    seen.sent += 1
    try:
        async with (
            asyncio.timeout(load.give_up),
            session.post(f"{load.url}/v1/completions", json=body) as response,
        ):
            if response.status != 200:
                seen.refused += 1
                await asyncio.sleep(0.5)
                return
            seen.tokens += (await response.json())["usage"]["completion_tokens"]
            seen.done += 1
    except TimeoutError:
        seen.given_up += 1
    except aiohttp.ClientError:
        seen.refused += 1
        await asyncio.sleep(0.5)


async def client(session: aiohttp.ClientSession, load: Load, seed: int, seen: Sent) -> None:
    """One client, for as long as it is let."""
    draw = random.Random(seed)  # noqa: S311  the same load each time
    while True:
        await ask(session, load, draw, seen)


async def drive(load: Load, seconds: float) -> Sent:
    """All clients, for so long."""
    seen = Sent()
    connections = aiohttp.TCPConnector(limit=0)
    whole = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connections, timeout=whole) as session:
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as clients:
                for seed in range(load.concurrency):
                    clients.create_task(client(session, load, seed, seen))
        except TimeoutError:
            pass
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--prompt", type=int, required=True)
    parser.add_argument("--output", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--give-up", type=float)
    args = vars(parser.parse_args())
    seconds = args.pop("seconds")
    sys.stdout.write(json.dumps(asdict(asyncio.run(drive(Load(**args), seconds)))) + "\n")


if __name__ == "__main__":
    main()
