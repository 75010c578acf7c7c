"""Whether the engine gets on: requests that run must bring tokens."""


def stalled_ratio(
    still_seconds: float,
    running_last_requests: float,
    usual_gap_seconds: float,
    usual_prefill_seconds: float,
    gpu_denies_stall_ratio: float,
    *,
    patience_seconds: float = 6.0,
    gaps: float = 30.0,
    prefills: float = 4.0,
) -> float:
    """1 when requests have run for longer than patience without one token or step to show.

    A GPU that works may be inside one long step, so its activity speaks against a stall.
    """
    if running_last_requests <= 0:
        return 0.0
    patience = max(patience_seconds, gaps * usual_gap_seconds, prefills * usual_prefill_seconds)
    if gpu_denies_stall_ratio > 0.5:  # noqa: PLR2004
        patience *= 3
    return 1.0 if still_seconds >= patience else 0.0
