"""One page over HTTP: a GET with a deadline and a size it may not pass.

It keeps the promise of a source: whatever happens, nothing but a `SourceError` comes out, its
text with what went wrong and what to try. Redirects are not followed, since a page that moved
is a setting to correct; a page that stops half-way is an error and not a short page.
"""

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Generic, TypeVar

import aiohttp
import yarl

from boundby.sources.base import SourceError
from boundby.sources.looks import WrongPageError

ReadT = TypeVar("ReadT")

DEADLINE_SECONDS = 2.0
"""How long a read may take by default."""

MOST_BYTES = 64 * 1024**2
"""How large a page may be by default, unpacked."""

CHUNK_BYTES = 64 * 1024

PARSE_ASIDE_BYTES = 1024**2
"""From this size on a page is parsed in a thread, so that the loop goes on answering."""

GZIP = 16 + zlib.MAX_WBITS

HEADERS = {"Accept": "text/plain;version=0.0.4,*/*;q=0.1", "Accept-Encoding": "gzip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a page is, and what its server asks for.

    `token` is sent as a bearer token; `token_file` is read anew each time, as Kubernetes turns
    such files over. `tls` is a context that knows the right CA, or None for the system's.
    """

    url: str
    token: str | None = None
    token_file: Path | None = None
    tls: ssl.SSLContext | None = None
    deadline_seconds: float = DEADLINE_SECONDS
    most_bytes: int = MOST_BYTES

    @property
    def shown(self) -> str:
        """The URL without what must stay secret."""
        try:
            url = yarl.URL(self.url).with_user(None)
        except ValueError:
            return self.url
        return str(url.with_query("...") if url.query else url)


def trust(ca_file: Path | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """Make a TLS context that trusts `ca_file`, or anybody; `OSError` for an unreadable file."""
    context = ssl.create_default_context(cafile=ca_file)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class PageSource(Generic[ReadT]):
    """A source that fetches one page and parses it; `page` is the text of the last good read."""

    def __init__(
        self,
        name: str,
        session: aiohttp.ClientSession,
        address: Address,
        parse: Callable[[str], ReadT],
    ) -> None:
        self.name = name
        self.page: str | None = None
        self._session = session
        self._address = address
        self._parse = parse

    async def read(self) -> ReadT:
        """Fetch and parse the page once; raises nothing but `SourceError`."""
        text = await fetch(self.name, self._session, self._address)
        try:
            if len(text) < PARSE_ASIDE_BYTES:
                read = self._parse(text)
            else:
                read = await asyncio.to_thread(self._parse, text)
        except WrongPageError as error:
            problem = f"{self._address.shown}: {error}"
            raise SourceError(self.name, problem, error.hint) from error
        except ValueError as error:
            problem = f"the page of {self._address.shown} cannot be read ({error})"
            raise SourceError(self.name, problem, "Please report this with the page.") from error
        self.page = text
        return read


async def fetch(name: str, session: aiohttp.ClientSession, address: Address) -> str:
    """Return the page's text; `SourceError`, in the name of source `name`, says why not."""
    where = f"no metrics from {address.shown}"
    try:
        async with asyncio.timeout(address.deadline_seconds):
            return await _get(name, session, address)
    except TimeoutError as error:
        problem = f"{where} (no whole page within {address.deadline_seconds:g} s)"
        hint = "Is the server overloaded? A longer deadline may be set."
        raise SourceError(name, problem, hint) from error
    except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
        problem = f"{where} ({_why(error)})"
        raise SourceError(name, problem, _hint(error)) from error


async def _get(name: str, session: aiohttp.ClientSession, address: Address) -> str:
    headers = dict(HEADERS)
    token = address.token
    if address.token_file is not None:
        token = (await asyncio.to_thread(address.token_file.read_text, "utf-8")).strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with session.get(
        address.url,
        headers=headers,
        allow_redirects=False,
        auto_decompress=False,
        ssl=address.tls or True,
        timeout=aiohttp.ClientTimeout(total=None),
    ) as response:
        if response.status != HTTPStatus.OK:
            raise _refused(name, address, response)
        body = bytearray()
        async for chunk in _unpacked(response):
            body += chunk
            if len(body) > address.most_bytes:
                problem = (
                    f"the page of {address.shown} is larger than "
                    f"{address.most_bytes / 1024**2:g} MiB"
                )
                hint = "Is this a /metrics page? A larger limit may be set."
                raise SourceError(name, problem, hint)
    return body.decode("utf-8", errors="replace")


async def _unpacked(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Give the body piece by piece, never more than a chunk unpacked at a time."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        msg = f"the page comes in an encoding nobody asked for: {encoding}"
        raise ValueError(msg)
    pieces = response.content.iter_chunked(CHUNK_BYTES)
    if encoding in ("identity", ""):
        async for piece in pieces:
            yield piece
        return
    unpacker = zlib.decompressobj(GZIP)
    async for piece in pieces:
        packed = piece
        while packed:
            if unpacker.eof:
                unpacker = zlib.decompressobj(GZIP)  # a gzip file may be several in a row
            yield unpacker.decompress(packed, CHUNK_BYTES)
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        msg = "the packed page ends half-way"
        raise ValueError(msg)


def _refused(name: str, address: Address, response: aiohttp.ClientResponse) -> SourceError:
    """Say what an answer other than 200 means."""
    status = response.status
    said = f"{status} {response.reason or ''}".strip()
    hint = "The server's own log says why."
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        hint = "Does it want a bearer token, and is the one given right?"
    elif status == HTTPStatus.NOT_FOUND:
        hint = "Is the path right? It is mostly /metrics."
    elif 300 <= status < 400:  # noqa: PLR2004  # redirects
        target = response.headers.get("Location", "elsewhere")
        hint = f"Redirects are not followed; the page has moved to {target}."
    return SourceError(name, f"no metrics from {address.shown} (it answers {said})", hint)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What a kind of error is called, and what to try."""

    kinds: tuple[type[Exception], ...]
    why: str
    hint: str


TROUBLES = (
    _Trouble(
        (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError),
        "this is not a URL",
        "Write it as http://HOST:PORT/metrics.",
    ),
    _Trouble(
        (aiohttp.ClientConnectorCertificateError,),
        "its certificate is not trusted: {error.certificate_error}",
        "Name the CA that signed its certificate.",
    ),
    _Trouble(
        (aiohttp.ClientConnectorSSLError,),
        "no TLS there",
        "Does the server speak TLS on this port? If not, the URL begins with http://.",
    ),
    _Trouble(
        (aiohttp.ClientPayloadError,),
        "the page ends half-way",
        "Did the server stop while it answered?",
    ),
    _Trouble(
        (aiohttp.ClientResponseError,),
        "what answers there does not speak HTTP as it should",
        "Is this the port of the engine's HTTP server?",
    ),
    _Trouble((Exception,), "{said}", "Is the server up, and is this its port?"),
)
"""The kinds of error in the order in which they are tried."""


def _why(error: Exception) -> str:
    """Put an error into few words."""
    return _trouble(error).why.format(error=error, said=_said(error))


def _hint(error: Exception) -> str:
    """Say what to try."""
    return _trouble(error).hint


def _trouble(error: Exception) -> _Trouble:
    return next(trouble for trouble in TROUBLES if isinstance(error, trouble.kinds))


def _said(error: Exception) -> str:
    """Return the error's own words, the system's where it has a number."""
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        return os.strerror(number) if number > 0 else str(error.os_error.strerror or error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__
