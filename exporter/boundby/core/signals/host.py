"""What the engine's processes and their container get of the CPU.

A thread is busy also while it spins for the GPU: a busy engine core tells something only where
the GPU waits at the same time.
"""


def engine_core_busiest_thread_ratio(
    engine_core_busiest_thread_cpu_seconds_per_second: float,
) -> float:
    """Share of time that the engine core's busiest thread spent on a CPU."""
    return min(1.0, engine_core_busiest_thread_cpu_seconds_per_second)


def api_server_busy_ratio(api_server_busiest_thread_cpu_seconds_per_second: float) -> float:
    """Share of time that the API server's busiest thread spent on a CPU."""
    return min(1.0, api_server_busiest_thread_cpu_seconds_per_second)


def cpu_throttled_ratio(
    cpu_throttled_periods_per_second: float, cpu_periods_per_second: float
) -> float:
    """Share of the cgroup's enforcement periods in which it ran into its CPU limit."""
    if cpu_periods_per_second == 0:
        return 0.0  # no period passes while nothing runs, and nothing is held back
    return min(1.0, cpu_throttled_periods_per_second / cpu_periods_per_second)


def engine_core_run_queue_ratio(engine_core_run_queue_seconds_per_second: float) -> float:
    """Share of time that the engine core's busiest thread could run and had no CPU."""
    return min(1.0, engine_core_run_queue_seconds_per_second)


def api_server_run_queue_ratio(api_server_run_queue_seconds_per_second: float) -> float:
    """Share of time that the API server's busiest thread could run and had no CPU."""
    return min(1.0, api_server_run_queue_seconds_per_second)


def engine_cores_used_count(
    engine_core_cpu_seconds_per_second: float, api_server_cpu_seconds_per_second: float
) -> float:
    """Cores that the engine core and the API server keep busy together."""
    return engine_core_cpu_seconds_per_second + api_server_cpu_seconds_per_second
