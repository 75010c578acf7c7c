"""A roofline as a picture: log-log axes, two roofs, and the plan's points on them."""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from boundby.core.cost.plan import Deployment, Plan

WIDTH, HEIGHT = 760, 480
LEFT, RIGHT, TOP, BOTTOM = 90, 30, 50, 60

_DECODE, _PREFILL, _ROOF, _GRID, _INK = "#1f6feb", "#d9480f", "#24292f", "#d8dee4", "#24292f"

_STYLE = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12"'


class PictureError(ValueError):
    """The picture cannot be written; the text says what would help."""


class _Point(NamedTuple):
    """A place on the roofline, with a word beside it."""

    intensity: float
    flops_per_second: float
    label: str
    colour: str


class _Axis(NamedTuple):
    """A logarithmic axis from `low` to `high` (powers of ten), in pixels."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @classmethod
    def over(cls, values: list[float], start: float, end: float) -> "_Axis":
        low = math.floor(math.log10(min(values)))
        high = math.ceil(math.log10(max(values)))
        return cls(low, max(high, low + 1), start, end)


def _points(plan: Plan, gpus: int) -> Iterator[_Point]:
    for decode in plan.decode:
        yield _Point(decode.intensity, decode.flops_per_second, f"b{decode.batch}", _DECODE)
    for prefill in plan.prefill_curve:
        rate = prefill.flops / gpus / prefill.seconds
        yield _Point(prefill.intensity, rate, f"p{prefill.prompt}", _PREFILL)


def svg(title: str, deployment: Deployment, plan: Plan) -> str:
    """Return the roofline of one GPU as SVG, decode batches and prompts marked."""
    points = list(_points(plan, deployment.parallel.gpus))
    ridge = plan.ridge_point_flops_per_byte
    bandwidth = deployment.gpu.memory_bytes_per_second
    peak = ridge * bandwidth
    x = _Axis.over([ridge / 30, ridge * 10, *(p.intensity for p in points)], LEFT, WIDTH - RIGHT)
    y = _Axis.over([peak, peak / 100, *(p.flops_per_second for p in points)], HEIGHT - BOTTOM, TOP)
    lowest = max(10.0**x.low, 10.0**y.low / bandwidth)
    roof = [(lowest, lowest * bandwidth), (ridge, peak), (10.0**x.high, peak)]
    path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in roof)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" {_STYLE}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(LEFT, 24, title, size=15),
            *_grid(x, y),
            f'<polyline points="{path}" fill="none" stroke="{_ROOF}" stroke-width="2"/>',
            _text(x.at(ridge), y.at(peak) - 8, f"ridge point {ridge:.0f}", anchor="middle"),
            *(_mark(x.at(p.intensity), y.at(p.flops_per_second), p) for p in points),
            *_legend(),
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def _mark(x: float, y: float, point: _Point) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{point.colour}"/>' + _text(
        x + 6, y + 14, point.label, size=10
    )


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for power in range(x.low, x.high + 1):
        at = x.at(10.0**power)
        yield f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{_GRID}"/>'
        yield _text(at, HEIGHT - BOTTOM + 18, f"{10.0**power:g}", anchor="middle")
    for power in range(y.low, y.high + 1):
        at = y.at(10.0**power)
        yield f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{_GRID}"/>'
        yield _text(LEFT - 8, at + 4, f"{10.0 ** (power - 12):g}", anchor="end")
    yield _text((LEFT + WIDTH) / 2, HEIGHT - 18, "FLOPs per byte", anchor="middle")
    yield _text(LEFT, TOP - 8, "TFLOP/s, one GPU", anchor="middle")


def _legend() -> Iterator[str]:
    words = ((_DECODE, "decode, by batch"), (_PREFILL, "prefill, by prompt"))
    for row, (colour, label) in enumerate(words):
        y = HEIGHT - BOTTOM - 34 + 18 * row
        yield f'<circle cx="{WIDTH - 170}" cy="{y}" r="4" fill="{colour}"/>'
        yield _text(WIDTH - 160, y + 4, label)


def draw(path: Path, title: str, deployment: Deployment, plan: Plan) -> None:
    """Write the picture to `path`, .svg or .png."""
    drawn = svg(title, deployment, plan)
    try:
        match path.suffix.lower():
            case ".svg":
                path.write_text(drawn, "utf-8")
            case ".png":
                path.write_bytes(_png(drawn))
            case _:
                msg = f"{path} ends in neither .svg nor .png"
                raise PictureError(msg)
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise PictureError(msg) from error


def _png(drawn: str) -> bytes:
    try:
        cairosvg = importlib.import_module("cairosvg")
    except (ImportError, OSError) as error:
        msg = "a .png needs cairosvg (pip install cairosvg); a .svg needs nothing"
        raise PictureError(msg) from error
    image: bytes = cairosvg.svg2png(bytestring=drawn.encode(), scale=2)
    return image
