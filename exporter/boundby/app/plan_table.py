"""A plan as text, readable at 80 columns, and as the JSON object of the contract."""

from collections.abc import Iterable, Sequence
from typing import Any

from boundby.core.cost.example import Figure
from boundby.core.cost.plan import DecodePoint, Plan, PrefillPoint

_NAMES = {
    "memory_bandwidth": "memory",
    "compute": "compute",
    "interconnect": "link",
    "kernel_latency": "kernels",
}


def as_json(plan: Plan, variants: Sequence[tuple[str, Plan]] = ()) -> dict[str, Any]:
    """Return a plan as plain data; names carry their units."""
    page: dict[str, Any] = {
        "parameters": plan.parameters,
        "active_parameters": plan.active_parameters,
        "context_tokens": plan.context,
        "ridge_point_flops_per_byte": plan.ridge_point_flops_per_byte,
        "weight_bytes": plan.weight_bytes,
        "kv_bytes_per_token": plan.kv_bytes_per_token,
        "kv_bytes_per_sequence": plan.kv_bytes_per_sequence,
        "max_sequences": plan.max_sequences,
        "weights_stop_dominating_batch": plan.crossing.weights_stop_dominating,
        "compute_binds_batch": plan.crossing.compute_binds,
        "ttft_floor_seconds": plan.prefill.seconds,
        "itl_floor_seconds": min((p.step_seconds for p in plan.decode), default=None),
        "prefill": _prefill(plan.prefill),
        "prefill_curve": [_prefill(point) for point in plan.prefill_curve],
        "decode": [_decode(point) for point in plan.decode],
    }
    if variants:
        page["what_if"] = [
            {
                "change": change,
                "weight_bytes": other.weight_bytes,
                "max_sequences": other.max_sequences,
                "prefill": _prefill(other.prefill),
                "decode": [_decode(point) for point in other.decode],
            }
            for change, other in variants
        ]
    return page


def _prefill(point: PrefillPoint) -> dict[str, Any]:
    return {
        "prompt_tokens": point.prompt,
        "flops": point.flops,
        "compute_seconds": point.compute_seconds,
        "weight_read_seconds": point.weight_read_seconds,
        "seconds": point.seconds,
        "arithmetic_intensity_flops_per_byte": point.intensity,
        "bound_by": point.bound_by,
    }


def _decode(point: DecodePoint) -> dict[str, Any]:
    return {
        "batch": point.batch,
        "fits": point.fits,
        "step_seconds": point.step_seconds,
        "tokens_per_second": point.tokens_per_second,
        "tokens_per_second_per_request": point.tokens_per_second_per_request,
        "kv_bytes": point.kv_bytes,
        "arithmetic_intensity_flops_per_byte": point.intensity,
        "bound_by": point.bound_by,
    }


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells to the right under their headings, the last to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append(("  " + "  ".join([*cells, row[-1]])).rstrip())
    return lines


def _size(value: float) -> str:
    """Return bytes as text in the unit that suits them."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.0f} B"


def as_text(title: Iterable[str], plan: Plan, variants: Sequence[tuple[str, Plan]] = ()) -> str:
    """Return a plan as a page of text."""
    lines = [*title, ""]
    active = f", {plan.active_parameters / 1e9:.4g} billion met by a token"
    lines += [
        f"  parameters    {plan.parameters / 1e9:.4g} billion"
        + (active if plan.active_parameters != plan.parameters else ""),
        f"  weights       {_size(plan.weight_bytes)}",
        f"  KV cache      {plan.kv_bytes_per_token:,.0f} B a token; "
        f"{_size(plan.kv_bytes_per_sequence)} at {plan.context:,} tokens",
        f"  fits          {plan.max_sequences:,} sequences of {plan.context:,} tokens"
        + ("" if plan.fits else ": too few GPUs, or too wide a format"),
        f"  ridge point   {plan.ridge_point_flops_per_byte:.0f} FLOP/byte",
        *_crossing(plan),
        "",
        f"decode at {plan.context:,} tokens of context",
        *_columns(
            [
                ("batch", "step ms", "tok/s", "each", "KV", "FLOP/B", "bound by"),
                *(_decode_row(point) for point in plan.decode),
            ]
        ),
        "",
        "prefill of one prompt",
        *_columns(
            [
                ("tokens", "ms", "compute", "weights", "tok/s", "TFLOP", "bound by"),
                *(_prefill_row(point) for point in _prompts(plan)),
            ]
        ),
    ]
    if variants:
        lines += ["", *_what_if(plan, variants)]
    if any(not point.fits for point in plan.decode):
        lines += ["", "* does not fit in memory at this context"]
    return "\n".join(lines)


def _crossing(plan: Plan) -> tuple[str, str]:
    weights = plan.crossing.weights_stop_dominating
    compute = plan.crossing.compute_binds
    first = f"from batch {weights:,.0f}" if weights else "never"
    then = f"from batch {compute:,.0f}" if compute else "never at this context"
    return (
        f"  KV reads outweigh weights {first}",
        f"  arithmetic outlasts memory in decode {then}",
    )


def _prompts(plan: Plan) -> list[PrefillPoint]:
    points = {point.prompt: point for point in (*plan.prefill_curve, plan.prefill)}
    return [points[tokens] for tokens in sorted(points)]


def _decode_row(point: DecodePoint) -> tuple[str, ...]:
    return (
        f"{point.batch:,}" + ("" if point.fits else "*"),
        f"{point.step_seconds * 1e3:.2f}",
        f"{point.tokens_per_second:,.1f}",
        f"{point.tokens_per_second_per_request:.1f}",
        _size(point.kv_bytes),
        f"{point.intensity:.1f}",
        _NAMES[point.bound_by],
    )


def _prefill_row(point: PrefillPoint) -> tuple[str, ...]:
    return (
        f"{point.prompt:,}",
        f"{point.seconds * 1e3:.2f}",
        f"{point.compute_seconds * 1e3:.2f}",
        f"{point.weight_read_seconds * 1e3:.2f}",
        f"{point.prompt / point.seconds:,.0f}",
        f"{point.flops / 1e12:,.1f}",
        _NAMES[point.bound_by],
    )


def _what_if(plan: Plan, variants: Sequence[tuple[str, Plan]]) -> list[str]:
    """Set variants side by side, at the plan's first and last batch."""
    first, last = plan.decode[0].batch, plan.decode[-1].batch
    head = ("sequences", "weights", f"ms b{first}", f"ms b{last}", f"tok/s b{last}", "what if")
    rows = [
        (
            f"{other.max_sequences:,}",
            _size(other.weight_bytes),
            f"{other.decode[0].step_seconds * 1e3:.2f}",
            f"{other.decode[-1].step_seconds * 1e3:.2f}",
            f"{other.decode[-1].tokens_per_second:,.0f}",
            change,
        )
        for change, other in (("as asked", plan), *variants)
    ]
    return ["what if", *_columns([head, *rows])]


def example_text(figures: Iterable[Figure]) -> str:
    """Return the worked example as a table."""
    rows = [
        (f"{figure.value:,.{figure.decimals}f}", f"{figure.unit:<9}  {figure.what}")
        for figure in figures
    ]
    title = "70 billion parameters on four 80 GB GPUs; context 4,096, prompt 2,000"
    return "\n".join([title, "", *_columns(rows)])
