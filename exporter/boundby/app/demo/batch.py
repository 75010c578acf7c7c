"""The decoding sequences of the simulated engine, kept as sums.

Every decoding sequence gains one token in each decode step, so what a step needs of them all
(how many, how much context, how many new KV blocks, who ends when) follows from the number of
decode steps done and from what was true when each joined. Only joining and leaving costs work.
"""

import heapq

from boundby.app.demo.load import Request

BLOCK = 16
"""Tokens of a KV block."""

STRIDE = 16
"""Most decode steps advanced at once; no more than a block, so that no growth repeats."""


class Batch:
    """The sequences that decode. `step` counts decode steps; blocks are counted elsewhere."""

    def __init__(self) -> None:
        self.step = 0
        self.size = 0
        self.progress = 0.0
        """Requests' worth of output gained a step: the sum of one over each output length."""
        self._context = 0
        """Sum of the sequences' KV tokens as they would have been at decode step 0."""
        self._grows = [0] * BLOCK
        """Sequences by the decode step, modulo a block, that needs a new block of them."""
        self._ends: list[tuple[int, int, Request]] = []
        self._joined = 0

    @property
    def context(self) -> int:
        """Tokens of KV that the next decode step reads, the new ones included."""
        return self._context + self.size * (self.step + 1) if self.size else 0

    @property
    def growth(self) -> int:
        """Blocks that the next decode step needs."""
        return self._grows[self.step % BLOCK]

    def join(self, request: Request) -> None:
        """Begin to decode a request whose target is computed."""
        request.joined = self.step
        request.finish = self.step + request.output - request.generated
        self._grows[(request.joined - request.target) % BLOCK] += 1
        self._context += request.target - request.joined
        self.progress += 1.0 / request.output
        self.size += 1
        self._joined += 1
        heapq.heappush(self._ends, (request.finish, self._joined, request))

    def leave(self, request: Request) -> int:
        """Take a request out; gives the blocks that its tokens fill."""
        held = request.target + self.step - request.joined
        self._grows[(request.joined - request.target) % BLOCK] -= 1
        self._context -= request.target - request.joined
        self.progress -= 1.0 / request.output
        self.size -= 1
        request.finish = -1
        return -(-held // BLOCK)

    def alike(self, free_blocks: int) -> int:
        """Count the decode steps, one at least, before a sequence ends or blocks run out."""
        while self._ends and self._ends[0][2].finish != self._ends[0][0]:
            heapq.heappop(self._ends)
        steps = min(STRIDE, self._ends[0][0] - self.step) if self._ends else STRIDE
        needed = 0
        for ahead in range(steps):
            needed += self._grows[(self.step + ahead) % BLOCK]
            if needed > free_blocks:
                return max(1, ahead)
        return max(1, steps)

    def advance(self, steps: int) -> int:
        """Pass `steps` decode steps; gives the blocks they took."""
        taken = sum(self._grows[(self.step + ahead) % BLOCK] for ahead in range(steps))
        self.step += steps
        return taken

    def due(self) -> list[Request]:
        """Give the requests that have their last token; they are still in."""
        found = []
        while self._ends and self._ends[0][0] <= self.step:
            end, _, request = heapq.heappop(self._ends)
            if request.finish == end:
                found.append(request)
        return found
