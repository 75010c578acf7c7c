"""Too little evidence to say. What is missing, why, and what would supply it stands beside it.

An honest gap: boundby would rather name none than the wrong one.
"""

from boundby.core.limit import Limit

LIMIT = Limit(
    name="unknown",
    title="unknown",
    group="none",
    page=__doc__,
    remedies=("Run `boundby doctor`: it lists each missing input and the line that supplies it.",),
    wont_help=("Acting on a guess.",),
)
