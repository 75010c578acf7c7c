import asyncio
import gzip
import shutil
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from boundby.sources import vllm
from boundby.sources.base import SourceError
from boundby.sources.fetch import Address, PageSource, fetch, trust

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PAGE = 'vllm:num_requests_running{engine="0",model_name="m"} 3\n'


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """Serve one handler at /metrics; give its URL."""
    servers: list[TestServer] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_get("/metrics", handler)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/metrics"))

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
async def speak() -> AsyncIterator[Callable[[bytes], Awaitable[str]]]:
    """Answer whatever comes with these bytes and hang up; give the URL."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes) -> str:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


Serve = Callable[[Handler], Awaitable[str]]
Speak = Callable[[bytes], Awaitable[str]]


def answer(**response: Any) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(**response)

    return handle


async def refusal(session: aiohttp.ClientSession, address: Address) -> SourceError:
    with pytest.raises(SourceError) as refused:
        await fetch("engine", session, address)
    assert str(refused.value).startswith("engine: ")
    return refused.value


async def test_a_page_is_fetched_as_it_is(session: aiohttp.ClientSession, serve: Serve) -> None:
    url = await serve(answer(text=PAGE))

    assert await fetch("engine", session, Address(url=url)) == PAGE


@pytest.mark.parametrize("members", [1, 3])
async def test_a_packed_page_is_unpacked(
    members: int, session: aiohttp.ClientSession, serve: Serve
) -> None:
    url = await serve(
        answer(body=gzip.compress(PAGE.encode()) * members, headers={"Content-Encoding": "gzip"})
    )

    assert await fetch("engine", session, Address(url=url)) == PAGE * members


async def test_a_large_packed_page_arrives_whole(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    text = "".join(f"a_{number} 1\n" for number in range(100_000))
    url = await serve(
        answer(body=gzip.compress(text.encode()), headers={"Content-Encoding": "gzip"})
    )

    assert await fetch("engine", session, Address(url=url)) == text


async def test_bytes_that_are_no_utf8_do_not_end_the_page(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    url = await serve(answer(body=b'a{b="\xff"} 1\n'))

    assert await fetch("engine", session, Address(url=url)) == 'a{b="\ufffd"} 1\n'


async def test_a_token_is_sent(session: aiohttp.ClientSession, serve: Serve) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.headers.get("Authorization", "none"))

    url = await serve(echo)

    assert await fetch("engine", session, Address(url=url, token="abc")) == "Bearer abc"  # noqa: S106  # not a secret


async def test_a_token_file_is_read_anew_each_time(
    session: aiohttp.ClientSession, serve: Serve, tmp_path: Path
) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.headers.get("Authorization", "none"))

    file = tmp_path / "token"
    address = Address(url=await serve(echo), token_file=file)
    said = []
    for token in ("one", "two\n"):
        file.write_text(token)
        said.append(await fetch("engine", session, address))

    assert said == ["Bearer one", "Bearer two"]


async def test_a_token_file_that_is_not_there_is_named(
    session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    file = tmp_path / "token"

    error = await refusal(session, Address(url="http://127.0.0.1:1/metrics", token_file=file))

    assert f"No such file or directory: {file}" in str(error)


async def test_a_server_that_refuses_is_told_with_its_address(
    session: aiohttp.ClientSession, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/metrics"

    error = await refusal(session, Address(url=url))

    assert str(error) == (
        f"engine: no metrics from {url} (Connection refused). "
        "Is the server up, and is this its port?"
    )


async def test_a_slow_server_is_given_up_at_the_deadline(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    forever = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        await forever.wait()
        return web.Response()

    address = Address(url=await serve(hang), deadline_seconds=0.05)

    error = await refusal(session, address)
    forever.set()

    assert "no whole page within 0.05 s" in str(error)


async def test_a_page_that_drips_is_given_up_at_the_deadline(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    forever = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(PAGE.encode())
        await forever.wait()
        return response

    address = Address(url=await serve(drip), deadline_seconds=0.1)

    error = await refusal(session, address)
    forever.set()

    assert "no whole page within 0.1 s" in str(error)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nvllm:a 1\n", id="by length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nvllm:a 1\n\r\n",
            id="chunked",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
            + gzip.compress(PAGE.encode() * 50)[:40],
            id="packed",
        ),
    ],
)
async def test_half_a_page_is_an_error(
    said: bytes, session: aiohttp.ClientSession, speak: Speak
) -> None:
    error = await refusal(session, Address(url=await speak(said)))

    assert "half-way" in str(error)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(b"", "Server disconnected", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP", id="another protocol"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
            "incorrect header check",
            id="not packed at all",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope",
            "an encoding nobody asked for: br",
            id="another packing",
        ),
    ],
)
async def test_an_answer_that_is_no_page_is_told(
    said: bytes, told: str, session: aiohttp.ClientSession, speak: Speak
) -> None:
    error = await refusal(session, Address(url=await speak(said)))

    assert told in str(error)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        pytest.param({"status": 500}, "it answers 500 Internal Server Error", id="500"),
        pytest.param({"status": 503, "text": "loading"}, "it answers 503", id="503"),
        pytest.param({"status": 404}, "It is mostly /metrics", id="404"),
        pytest.param({"status": 401}, "bearer token", id="401"),
        pytest.param({"status": 403}, "bearer token", id="403"),
        pytest.param(
            {"status": 302, "headers": {"Location": "http://elsewhere/"}},
            "Redirects are not followed; the page has moved to http://elsewhere/.",
            id="redirect",
        ),
        pytest.param({"status": 204}, "it answers 204 No Content", id="no content"),
    ],
)
async def test_an_answer_other_than_200_is_told_with_a_hint(
    response: dict[str, Any], told: str, session: aiohttp.ClientSession, serve: Serve
) -> None:
    error = await refusal(session, Address(url=await serve(answer(**response))))

    assert told in str(error)


async def test_a_page_that_is_too_large_is_given_up(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    url = await serve(answer(body=b"a 1\n" * 1_000_000))

    error = await refusal(session, Address(url=url, most_bytes=1024**2))

    assert "larger than 1 MiB" in str(error)


async def test_a_gzip_bomb_is_given_up_before_it_is_unpacked(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1024**2)) for _ in range(300)) + packer.flush()
    url = await serve(answer(body=bomb, headers={"Content-Encoding": "gzip"}))

    error = await refusal(session, Address(url=url, most_bytes=2 * 1024**2))

    assert len(bomb) < 400_000
    assert "larger than 2 MiB" in str(error)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "", "ftp://x/metrics", "http://[/"])
async def test_a_bad_url_is_told(url: str, session: aiohttp.ClientSession) -> None:
    error = await refusal(session, Address(url=url))

    assert "http://HOST:PORT/metrics" in str(error)


async def test_tls_on_a_plain_port_is_told(session: aiohttp.ClientSession, serve: Serve) -> None:
    url = (await serve(answer(text=PAGE))).replace("http://", "https://")

    error = await refusal(session, Address(url=url))

    assert "TLS" in str(error)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate, and beside it its key, for 127.0.0.1."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate, and is not here")
    file = tmp_path / "ca.pem"
    subprocess.run(  # noqa: S603  # a fixed command
        [
            *(openssl, "req", "-x509", "-nodes", "-days", "2"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(file), "-subj", "/CN=test"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return file


@pytest.fixture
async def secure_url(certificate: Path) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    app = web.Application()
    app.router.add_get("/metrics", answer(text=PAGE))
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    yield str(server.make_url("/metrics"))
    await server.close()


async def test_a_certificate_nobody_knows_is_refused_with_what_to_do(
    session: aiohttp.ClientSession, secure_url: str
) -> None:
    error = await refusal(session, Address(url=secure_url))

    assert "its certificate is not trusted" in str(error)
    assert "Name the CA" in str(error)


async def test_a_certificate_of_the_named_ca_is_trusted(
    session: aiohttp.ClientSession, secure_url: str, certificate: Path
) -> None:
    assert await fetch("engine", session, Address(url=secure_url, tls=trust(certificate))) == PAGE


async def test_trust_may_be_given_to_anybody(
    session: aiohttp.ClientSession, secure_url: str
) -> None:
    assert await fetch("engine", session, Address(url=secure_url, tls=trust(verify=False))) == PAGE


async def test_secrets_in_a_url_are_not_told(session: aiohttp.ClientSession) -> None:
    error = await refusal(
        session,
        Address(url="http://user:hush@127.0.0.1:1/metrics?key=hush2", token="hush3"),  # noqa: S106  # not a secret
    )

    assert "hush" not in str(error)


async def test_a_source_gives_what_its_parser_reads(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    source = PageSource("engine", session, Address(url=await serve(answer(text=PAGE))), vllm.parse)

    parsed = await source.read()

    assert parsed.engines[0].gauges["running_requests"] == 3.0
    assert source.page == PAGE


async def test_a_large_page_is_parsed_too(session: aiohttp.ClientSession, serve: Serve) -> None:
    text = PAGE + "# filler\n" * 200_000
    source = PageSource("engine", session, Address(url=await serve(answer(text=text))), vllm.parse)

    assert len((await source.read()).engines) == 1


async def test_another_engines_page_on_that_port_is_an_error_with_its_name(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    url = await serve(answer(text="<html>It works!</html>", content_type="text/html"))
    source = PageSource("engine", session, Address(url=url), vllm.parse)

    with pytest.raises(SourceError) as refused:
        await source.read()

    assert str(refused.value) == (
        f"engine: {url}: not a vLLM page; it looks like a web page (HTML). "
        "Is this the address of vLLM's API server, and its path /metrics?"
    )
    assert source.page is None


async def test_a_parser_that_gives_up_is_an_error_of_the_source(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    def fail(_: str) -> None:
        msg = "no"
        raise ValueError(msg)

    source = PageSource("engine", session, Address(url=await serve(answer(text=PAGE))), fail)

    with pytest.raises(SourceError, match=r"cannot be read \(no\)"):
        await source.read()


async def test_being_cancelled_is_no_error_of_the_source(
    session: aiohttp.ClientSession, serve: Serve
) -> None:
    forever = asyncio.Event()
    arrived = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await forever.wait()
        return web.Response()

    task = asyncio.create_task(fetch("engine", session, Address(url=await serve(hang))))
    await arrived.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    forever.set()
