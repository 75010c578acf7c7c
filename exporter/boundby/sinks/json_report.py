"""A report as JSON, in the shape of the contract."""

import json

from boundby.core.report import Report


def render(report: Report, *, indent: int | None = None) -> str:
    """Write the report; numbers that are no numbers never get this far."""
    return json.dumps(report.as_dict(), indent=indent, allow_nan=False)
