"""How many neighbours and which threshold: from a target to (k, t), by exact tails.

Bell, Bonawitz, Gascón, Lepoint and Raykova (2020), section 3: the clients sit on a circle in
random order, each is tied to the k / 2 next ones on both sides, and shares its secrets with
these k. docs/security.md has the conditions and their proofs.
"""

import math
from dataclasses import dataclass

from linsketch.errors import PlanningError
from linsketch.tails import hypergeometric_tail
from linsketch.validation import whole_number

_MOST = 4096  # neighbours


@dataclass(frozen=True)
class Parameters:
    """Neighbours of each client, and how many of them it takes to reconstruct a secret."""

    clients: int
    neighbours: int
    threshold: int
    least: int = 3  # clients that must be there for the numbers to hold; refused below

    def __post_init__(self) -> None:
        whole_number(self, "clients", 3, 2**32 - 2)
        whole_number(self, "neighbours", 2, self.clients - 1)
        whole_number(self, "threshold", 2, self.neighbours)
        whole_number(self, "least", 3, self.clients)
        if self.neighbours % 2 and self.neighbours != self.clients - 1:
            raise PlanningError("The number of neighbours is even, or all others.")


def choose_parameters(
    clients: int,
    *,
    corrupt: float = 0.2,
    dropout: float = 0.1,
    security_bits: int = 40,
    correctness_bits: int = 20,
    split_view_safe: bool = False,
    complete: bool = False,
) -> Parameters:
    """Return the fewest neighbours, and a threshold, that keep the targets.

    But for a probability of 2**-security_bits, no client has `threshold` corrupt neighbours and
    the graph of honest clients that stay is connected; but for 2**-correctness_bits, every
    client keeps `threshold` neighbours that answer. `split_view_safe` asks for
    2 * threshold > neighbours + corrupt neighbours, so that not even a server that tells
    neighbours different stories gets both kinds of share. `complete` ties everybody to everybody
    (Bonawitz et al. 2017).
    """
    if not isinstance(clients, int) or clients < 3:
        raise PlanningError(f"A secure sum takes 3 clients or more, not {clients!r}.")
    if not (0 <= corrupt < 1 and 0 <= dropout < 1):
        raise PlanningError("The shares of corrupt clients and of dropouts lie in 0 .. 1.")
    bad, gone = (math.ceil(share * clients - 1e-9) for share in (corrupt, dropout))
    degrees = [] if complete else list(range(2, min(clients - 1, _MOST), 2))
    # What is asked of k only gets easier as k grows, but for rounding: search, then step back.
    targets = (bad, gone, security_bits, correctness_bits, split_view_safe)
    low, high = -1, len(degrees)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _threshold(clients, degrees[middle], *targets) else (middle, high)
        )
    everybody = [clients - 1] if complete or clients <= _MOST else []
    for k in [*degrees[max(high - 4, 0) :], *everybody]:
        threshold = _threshold(clients, k, *targets)
        if threshold:
            return Parameters(clients, k, threshold, max(clients - gone, threshold + 1, 3))
    raise PlanningError(
        f"With {clients:,} clients, {corrupt:.0%} of them corrupt and {dropout:.0%} dropping out, "
        "no threshold is safe and lets enough drop out. Take more clients, or fewer of either."
    )


def _threshold(
    clients: int, k: int, bad: int, gone: int, security: int, correctness: int, split: bool
) -> int:
    """Return the smallest threshold that keeps the targets with k neighbours, 0 if none does."""
    complete = k == clients - 1
    cut = 0.0 if complete else disconnection(clients, k, bad + gone)
    allowed = (2.0**-security - cut) / clients
    if allowed <= 0:
        return 0

    def safe(t: int) -> bool:
        most = 2 * t - k if split else t
        # Dropouts may be gone before the graph is drawn: then more of the others are corrupt.
        others = max(clients - 1 - gone, bad)
        return most > 0 and hypergeometric_tail(others, bad, min(k, others), most) <= allowed

    low, high = 1, k + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if safe(middle) else (middle, high)
    if high > k:
        return 0
    lost = hypergeometric_tail(clients - 1, gone, k, k - high + 1)
    return high if clients * lost <= 2.0**-correctness else 0


def disconnection(clients: int, k: int, removed: int) -> float:
    """Bound the probability that removing random clients cuts the circle of the others in two.

    That takes two runs of k / 2 removed clients next to each other.
    """
    if k > removed:
        return 0.0
    log = sum(math.log((removed - i) / (clients - i)) for i in range(k))
    return min(1.0, math.exp(log + 2 * math.log(clients) - math.log(2)))
