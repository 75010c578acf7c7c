"""Writes docs/accuracy-cost.md: the cost model against measurements, good and bad rows alike.

    python tests/bench/accuracy_page.py DATA_FOLDER [--write docs/accuracy-cost.md]

DATA_FOLDER holds the published measurements; the part on models left out needs numpy and scipy.
"""

import argparse
import sys
from pathlib import Path

import cost_accuracy
import fit_pace
import kernel_accuracy
import unfitted_steps
from serving_rows import read_rows

HEAD = """\
# How near the cost model comes

Written by `tests/bench/accuracy_page.py`; nothing in it was measured by us.
Serving and kernel measurements: aiconfigurator-core 0.12.0 (Apache-2.0).
An error is predicted over measured, less one.
"median" and "p90" are of its size, "bias" is its median with its sign.

## Serving: time per output token

The sequences that decode at once follow from the concurrency and the measured time to first token.
Rows that are not what their columns say are kept apart at the end, with the reason.
"""

LEFT_OUT = """\
## Models left out

The constants were fitted on the rows that are what their columns say, with one model left out.
They were then tried on that one.
The constants below are those of all models together; `core/cost/pace.py` holds them rounded.
"""

UNFITTED = """\
## Steps that nothing was fitted to

Decode workers of disaggregated serving, and static batches of engines of 2023.
The batch is given, so a step is compared with a step.
Workers of one kind in a file may draft tokens or span more than one node without saying so.
"""

KERNELS = """\
## Single kernels

Medians of each regime over all GPUs, and the GPU that does worst there.
The fp8 block products of GPUs other than Hopper take 25 to 500 us whatever their size.
That is an artefact of how they were collected, and is fitted as such.
Eager all-reduces, those of other hosts and those over PCIe are left out: they time the host.
"""


def page(folder: Path) -> str:
    """Return the whole page."""
    serving = cost_accuracy.page(list(read_rows(folder)))
    parts = [
        HEAD,
        *serving,
        LEFT_OUT,
        *fit_pace.page(folder),
        "",
        UNFITTED,
        *unfitted_steps.page(folder),
        KERNELS,
        *kernel_accuracy.page(folder),
    ]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    """Print the page, or write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    text = page(args.folder)
    if args.write:
        args.write.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
