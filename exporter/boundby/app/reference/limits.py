"""rules/README.md: the limits in one table, then a page for each."""

from collections.abc import Iterable

from boundby.app.reference.markdown import bullets, code, page, table
from boundby.core.limit import Alert, Limit

GROUPS = {
    "load": "load: judged first",
    "software": "software: judged before the hardware roofs",
    "roof": "roof: sets the step",
    "progress": "progress: comes before everything",
    "none": "never chosen for the engine by score",
}
"""What a limit's group means for the order of judging."""

INTRO = (
    "A limit *binds* when a fifth more of its resource would give enough more throughput: "
    "an elasticity, ln(ratio) / ln(1.2), of at least its mark.\n"
    "Each limit below is one file in `boundby_rules`, and this page is made from those files.\n"
    "`boundby explain LIMIT` prints the same page."
)


def render(limits: Iterable[Limit]) -> str:
    """Write the page."""
    limits = tuple(limits)
    return page(
        "# Limits",
        INTRO,
        table(
            ("Limit", "Title", "Scopes", "Binds at", "Group", "Stability"),
            (
                (
                    f"[{code(limit.name)}](#{limit.name})",
                    limit.title,
                    ", ".join(limit.scores) or "-",
                    f"{limit.binds_at:g}" if limit.scores else "-",
                    GROUPS[limit.group],
                    limit.stability,
                )
                for limit in limits
            ),
        ),
        *(_limit(limit) for limit in limits),
    )


def _limit(limit: Limit) -> str:
    blocks = [f"## {limit.name}", _sentences(limit.page)]
    if limit.scores:
        blocks.append(
            table(
                ("Scope", "Score", "Needs", "Knobs"),
                (
                    (
                        scope,
                        formula.says,
                        ", ".join(code(need) for need in formula.needs),
                        ", ".join(code(f"{knob} = {v:g}") for knob, v in formula.knobs.items())
                        or "-",
                    )
                    for scope, formula in limit.scores.items()
                ),
            )
        )
    blocks += ["What would help, cheapest first:", bullets(limit.remedies)]
    blocks += ["What will not help:", bullets(limit.wont_help)]
    if limit.cases:
        rows = (
            (
                case.says,
                case.scope,
                ", ".join(code(f"{name} = {v:g}") for name, v in case.given.items()),
                f"{case.score:g}",
            )
            for case in limit.cases
        )
        blocks += ["Worked cases:", table(("Claim", "Scope", "Given", "Score"), rows)]
    if limit.alert is not None:
        blocks.append(_alert(limit.alert))
    return "\n\n".join(blocks)


def _alert(alert: Alert) -> str:
    share = f"{alert.share:.0%}".replace("%", " %")
    said = f"Alerts after {alert.after} of binding {share} of the time, as {alert.severity}"
    return f"{said}, when {alert.pain}." if alert.pain else f"{said}."


def _sentences(text: str) -> str:
    """Paragraphs with one sentence a line."""
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(part.replace(". ", ".\n") for part in paragraphs)
