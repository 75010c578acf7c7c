"""Prints what one estimate of a step costs, for each shipped model: the budget is 50 us.

python tests/bench/step_speed.py
"""

import json
import sys
from timeit import repeat

from serving_rows import MODELS

from boundby.core.cost import Parallel, StepBatch, coefficients, read_shape, step_cost, uniform
from boundby.core.cost.duration import rates, step_time
from boundby.core.cost.pace import attainable
from boundby.core.hardware import GPUS

RUNS = 2000


def main() -> int:
    """Print one line a model, the slowest last."""
    gpu = next(gpu for gpu in GPUS if gpu.key == "h100-sxm")
    batch = StepBatch(
        decode_sequences=64,
        decode_context_tokens=64 * 2048,
        prefill_tokens=1024,
        prefill_context_tokens=1024,
    )
    taken = []
    for name, config in json.loads(MODELS.read_text()).items():
        c = coefficients(read_shape(config), uniform(), Parallel(tensor=4))
        r = rates(gpu, c, attainable(gpu))

        def once(c: object = c, r: object = r) -> None:
            step_time(step_cost(c, batch), r)  # type: ignore[arg-type]  # bound above

        taken.append((min(repeat(once, number=RUNS, repeat=3)) / RUNS, name))
    for seconds, name in sorted(taken):
        sys.stdout.write(f"{seconds * 1e6:6.1f} us  {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
