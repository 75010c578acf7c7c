"""What a model's steps cost in FLOPs and bytes, from its config.json alone.

`read_shape` and `read_formats` read a config; `coefficients` puts them on GPUs, once;
`step_cost` costs one step in a few microseconds.
"""

from boundby.core.cost.capacity import (
    crossings,
    fitting_sequences,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    sequences_that_fit,
)
from boundby.core.cost.coefficients import Coefficients, coefficients
from boundby.core.cost.deployed import read_formats
from boundby.core.cost.fields import ConfigError
from boundby.core.cost.formats import Formats, uniform
from boundby.core.cost.parallel import Parallel
from boundby.core.cost.reading import read_shape
from boundby.core.cost.shape import ModelShape
from boundby.core.cost.step import StepBatch, StepCost, step_cost

__all__ = [
    "Coefficients",
    "ConfigError",
    "Formats",
    "ModelShape",
    "Parallel",
    "StepBatch",
    "StepCost",
    "coefficients",
    "crossings",
    "fitting_sequences",
    "kv_bytes_per_sequence",
    "kv_bytes_per_token",
    "read_formats",
    "read_shape",
    "sequences_that_fit",
    "step_cost",
    "uniform",
]
