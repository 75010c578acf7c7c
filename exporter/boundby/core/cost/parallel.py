"""How a model is spread over GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How a model is spread. `tensor` GPUs share each layer, `pipeline` stages share the layers.

    `expert` GPUs hold whole experts each (1: experts are sliced over `tensor` like the rest).
    With more of them than `tensor`, the tokens of that many engine ranks meet in the experts.
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that one engine rank uses."""
        return self.tensor * self.pipeline
