"""A report as one plain page: no script, nothing from elsewhere, all from outside escaped."""

from html import escape

from boundby.core.report import SCOPES, EngineReport, LimitReport, Report
from boundby.core.words import percent, phrase, seconds

COLOURS = {
    "demand": "#8c8c8c", "kv_capacity": "#cc79a7", "batch_slots": "#9467bd",
    "token_budget": "#b39ddb", "cpu_scheduling": "#e69f00", "interconnect": "#56b4e9",
    "memory_bandwidth": "#0072b2", "compute": "#009e73", "power": "#d55e00",
    "thermal": "#a50026", "kernel_latency": "#f0e442", "prefill_interference": "#7fbf7b",
    "kv_transfer": "#80cdc1", "imbalance": "#bf812d", "stalled": "#000000", "unknown": "#bdbdbd",
}  # fmt: skip
"""One colour a limit, everywhere; the eight of Okabe and Ito for the commonest."""

PARTS = {
    "no_work": ("no work", "demand"), "host_gap": ("host gap", "cpu_scheduling"),
    "compute": ("compute", "compute"), "memory": ("memory", "memory_bandwidth"),
    "interconnect": ("interconnect", "interconnect"),
    "kernel_latency": ("kernel latency", "kernel_latency"), "other": ("other", "unknown"),
}  # fmt: skip

_BASE = """
:root{color-scheme:light dark;--ink:#1c1c1e;--soft:#5f6368;--line:#d9d9de;--back:#fff;
--card:#f6f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#ececf0;--soft:#a5a8af;--line:#3a3a40;--back:#141416;
--card:#1e1e22}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;color:var(--ink);
background:var(--back);font:16px/1.45 system-ui,sans-serif}
h1{font-size:1rem;margin:0 0 1rem}h1 span{color:var(--soft);font-weight:400}
h2{font-size:1.15rem;margin:0 0 .3rem}h3{font-size:.85rem;color:var(--soft);margin:1.2rem 0 .3rem}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;
margin:0 0 1rem}
.story{font-size:1.15rem;margin:.2rem 0 .8rem}
.scope{border-left:.4rem solid var(--line);padding:.1rem 0 .1rem .6rem;margin:.5rem 0}
.scope b{font-weight:600}.soft{color:var(--soft)}
svg{display:block;width:100%;height:1.6rem;border-radius:.3rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.25rem .5rem .25rem 0;border-bottom:1px solid var(--line);
vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
details summary{cursor:pointer}ul{margin:.3rem 0 .3rem 1.1rem;padding:0}
.key{display:inline-block;width:.75rem;height:.75rem;border-radius:.2rem;margin-right:.3rem}
.scroll{overflow-x:auto}.down{color:#d55e00;font-weight:600}
"""

STYLE = _BASE + "".join(
    f".l-{name}{{fill:{colour};background:{colour}}}.s-{name}{{border-left-color:{colour}}}"
    for name, colour in COLOURS.items()
)
"""The page's style sheet; colours are classes, so that the page needs no inline style."""


def render(report: Report, now: float) -> str:
    """Write the page as of `now`."""
    body = [_engine(engine, report.at) for engine in report.engines]
    if not body:
        body.append("<section><h2>No verdict yet</h2><p>Sources below say why.</p></section>")
    age = max(0.0, now - report.at) if report.at else None
    made = (
        "no report yet" if age is None else f"made {seconds(age)} ago" if age >= 1 else "just made"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="refresh" content="5"><title>'
        f"{escape(_title(report))}</title>"
        '<link rel="stylesheet" href="style.css"></head><body>'
        f"<h1>boundby <span>{escape(made)}, window {report.window_seconds:g} s · "
        '<a href="metrics">metrics</a> · <a href="report.json">report.json</a></span></h1>'
        f"{''.join(body)}{_sources(report)}</body></html>\n"
    )


def _title(report: Report) -> str:
    if not report.engines:
        return "boundby: no verdict yet"
    return "boundby: " + ", ".join(e.verdict["engine"].limit for e in report.engines)


def _engine(engine: EngineReport, at: float) -> str:
    name = f"{engine.kind}-{engine.engine}"
    scopes = "".join(_scope(engine, scope, at) for scope in SCOPES)
    missing = "".join(
        f"<li><b>{escape(m.signal)}</b>: {escape(m.why)}. <i>{escape(m.fix)}</i></li>"
        for m in engine.missing
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in engine.notes)
    rows = sorted(engine.limits, key=lambda r: (not r.binds, -(r.score or -1.0), r.limit))
    return (
        f"<section><h2>{escape(name)} <span class='soft'>{escape(engine.model)}</span></h2>"
        f"<p class='story'>{escape(engine.story)}</p>{scopes}"
        f"<h3>Where the time goes</h3>{_bar(engine)}"
        f"<h3>Every limit</h3><div class='scroll'><table><tr><th>limit<th>elasticity<th>headroom"
        f"<th>evidence, or why not</tr>{''.join(_row(row) for row in rows)}</table></div>"
        + (f"<h3>Missing</h3><ul>{missing}</ul>" if missing else "")
        + (f"<h3>Notes</h3><ul>{notes}</ul>" if notes else "")
        + "</section>"
    )


def _scope(engine: EngineReport, scope: str, at: float) -> str:
    verdict = engine.verdict.get(scope)  # type: ignore[call-overload]  # the keys are these
    if verdict is None:
        return ""
    held = max(0.0, at - verdict.since)
    since = f" for {seconds(held)}" if held >= 1 else ""
    ties = f" or {', '.join(verdict.ties)}" if verdict.ties else ""
    return (
        f"<div class='scope s-{escape(verdict.limit)}'>{scope}: "
        f"<b>{escape(verdict.limit + ties)}</b>{since} ({percent(verdict.confidence)})"
        "<br><span class='soft'>"
        f"{escape('; '.join(verdict.because))}</span></div>"
    )


def _bar(engine: EngineReport) -> str:
    x, cells, keys = 0.0, [], []
    for part, share in engine.time.items():
        if share <= 0:
            continue
        words, limit = PARTS.get(part, (part, "unknown"))
        cells.append(
            f"<rect class='l-{limit}' x='{x * 1000:.1f}' y='0' width='{share * 1000:.1f}' "
            f"height='20'><title>{escape(words)} {percent(share)}</title></rect>"
        )
        if share >= 0.005:  # noqa: PLR2004  less rounds to nothing
            keys.append(f"<span class='key l-{limit}'></span>{escape(words)} {percent(share)}")
        x += share
    return (
        f"<svg viewBox='0 0 1000 20' preserveAspectRatio='none' role='img' "
        f"aria-label='time shares'>{''.join(cells)}</svg>"
        f"<p class='soft'>{' &nbsp; '.join(keys)}</p>"
    )


def _row(row: LimitReport) -> str:
    score = "" if row.score is None else f"{row.score:.2f}"
    head = f"+{percent(row.headroom)}" if row.headroom else ""
    shown = "; ".join(phrase(name, number) for name, number in list(row.evidence.items())[:4])
    why = "; ".join(text for text in (row.why_not, shown) if text)
    helps = "".join(f"<li>{escape(text)}</li>" for text in row.remedies)
    wont = "".join(f"<li>{escape(text)}</li>" for text in row.wont_help)
    return (
        f"<tr><td><span class='key l-{escape(row.limit)}'></span>"
        f"{'<b>' if row.binds else ''}{escape(row.limit)}{'</b>' if row.binds else ''}"
        f"<td class='n'>{score}<td class='n'>{head}<td><details><summary>{escape(why)}</summary>"
        f"<p>What would help</p><ul>{helps}</ul><p>What will not</p><ul>{wont}</ul></details></tr>"
    )


def _sources(report: Report) -> str:
    if not report.sources:
        return ""
    rows = "".join(
        f"<tr><td>{escape(s.source)}<td class='{'up' if s.up else 'down'}'>"
        f"{'up' if s.up else f'down for {seconds(s.age_seconds)}'}<td>{escape(s.detail)}</tr>"
        for s in report.sources
    )
    return f"<section><h2>Sources</h2><div class='scroll'><table>{rows}</table></div></section>"
