"""Watts and clocks: a slow controller that keeps the board inside its limits.

Dynamic power of logic goes with clock times voltage squared, and voltage about with clock, so
watts go with the cube of the clock at a fixed amount of work per cycle; the controller therefore
moves the clock by the cube root of the power ratio, at the pace of the driver's control loop.
"""

import math

from boundby.app.demo.machine import Machine
from boundby.app.demo.tally import GpuTally

CONTROL_SECONDS = 0.15
"""Time constant of the power controller and of the power reading."""

HELD_BELOW = 0.995
"""A clock ratio under this counts as held down."""


class Clocks:
    """The state of one board: its clock, its smoothed power, and why the clock is held."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.ratio = machine.board.thermal_clock_ratio
        self.watts = machine.board.idle_share * machine.gpu.power_watts
        self.held_by_power = False

    def change(self, machine: Machine) -> None:
        """Go on with another machine's limits, from the clock and power of now."""
        self._machine = machine

    @property
    def held_by_heat(self) -> bool:
        """Whether the temperature's clock is what the board runs at."""
        cap = self._machine.board.thermal_clock_ratio
        return cap < HELD_BELOW and self.ratio >= cap * HELD_BELOW

    def spend(self, seconds: float, did: GpuTally) -> None:
        """Account `seconds` in which the GPU did `did`, then set the clock for what follows.

        Fills in the energy, clock and held time of `did`.
        """
        if seconds <= 0.0:
            return
        board, gpu = self._machine.board, self._machine.gpu
        squared = self.ratio * self.ratio
        # Tensor seconds are counted at full clock: the rate already fell with the clock.
        tensor = did.tensor_seconds / seconds
        dram = did.dram_bytes / seconds / self._machine.peak_bandwidth
        busy = did.busy_seconds / seconds
        watts = gpu.power_watts * (
            board.idle_share
            + board.busy_share * busy * squared
            + board.tensor_share * tensor * squared
            + board.dram_share * dram
        )
        did.wall_seconds += seconds
        did.clock_seconds += self.ratio * seconds
        did.energy_joules += watts * seconds
        if self.held_by_power:
            did.power_held_seconds += seconds
        elif self.held_by_heat:
            did.thermal_held_seconds += seconds
        step = 1.0 - math.exp(-seconds / CONTROL_SECONDS)
        self.watts += (watts - self.watts) * step
        wanted = self.ratio * (board.power_limit_watts / max(self.watts, 1.0)) ** (step / 3.0)
        cap = board.thermal_clock_ratio
        self.ratio = max(board.lowest_clock_ratio, min(cap, wanted))
        self.held_by_power = self.ratio < min(cap, HELD_BELOW) * HELD_BELOW
