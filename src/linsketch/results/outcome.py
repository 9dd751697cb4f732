"""Outcome: all that is said of a campaign, in one typed value.

Page, terminal, JSON, logs and notebooks read it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from linsketch import markup
from linsketch.history import FailedRounds, Round
from linsketch.plan import Plan
from linsketch.records.transcript import Transcript
from linsketch.results.items import Found
from linsketch.results.score import HeavyTruth, HistogramTruth, score
from linsketch.server import Server
from linsketch.sketch.slices import WHOLE

_LINES = 20  # items shown in a notebook


@dataclass(frozen=True)
class RoundFacts:
    """What is said of a closed round."""

    round: int
    users: int
    sampling_threshold: float
    capacity: int
    cells: int
    status: str
    keys: int
    estimated_keys: float
    at_least: bool  # the keys are a lower bound
    bytes: int  # a user sent
    down_bytes: int  # a user was sent
    named: int
    slots: int  # named items that were counted
    slice: float  # part of the keys that was looked at

    @classmethod
    def of(cls, closed: Round) -> "RoundFacts":
        """Return the facts of a round."""
        task = closed.task
        return cls(
            round=task.round,
            users=closed.users,
            sampling_threshold=task.sampling_threshold,
            capacity=task.table.capacity if task.table else 0,
            cells=task.table.size.cells if task.table else 0,
            status=closed.status,
            keys=closed.keys,
            estimated_keys=round(closed.estimated_keys, 1),
            at_least=closed.at_least,
            bytes=closed.wire_bytes,
            down_bytes=closed.down_bytes,
            named=task.named,
            slots=sum(len(each.items) for each in task.slots or () if each.bits),
            slice=task.slice.width / WHOLE if task.slice else 1.0,
        )


@dataclass(frozen=True)
class SumFacts:
    """Which secure sum a campaign ran through, and the bytes of a client; None: not measured."""

    protocol: str = "clear"
    dropout: float = 0.0
    vector_bytes: int | None = None
    up_bytes: int | None = None
    down_bytes: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came out of a campaign. `items` are heavy hitters, or the lines of a histogram."""

    source: str | None  # of a rehearsal: where its rows are from
    plan: Plan
    secure_sum: SumFacts
    failed_rounds: tuple[int, ...]
    counted_as: FailedRounds  # what these are
    warnings: tuple[str, ...]
    rounds: tuple[RoundFacts, ...]
    items: tuple[Found, ...]
    truth: HeavyTruth | HistogramTruth | None = None

    @property
    def is_histogram(self) -> bool:
        """Whether the plan asks for a histogram."""
        return self.plan.error is not None

    @property
    def users(self) -> int:
        """Users in all sums."""
        return sum(line.users for line in self.rounds)

    @property
    def bytes_per_user_round(self) -> int:
        """The most that a user sent."""
        return max((line.bytes for line in self.rounds), default=0)

    @property
    def words_per_user_round(self) -> int:
        """The same in words of 16 bits."""
        return -(-self.bytes_per_user_round // 2)

    @property
    def down_bytes_per_user_round(self) -> int:
        """The most that a user was sent."""
        return max((line.down_bytes for line in self.rounds), default=0)

    @property
    def failed_as(self) -> str:
        """Say what failed rounds count as."""
        scaled = "the other rounds are scaled up for them"
        return scaled if self.counted_as == "scale" else "they count as zero"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "source": self.source,
            "plan": self.plan.to_json(),
            "plan_id": self.plan.plan_id,
            "bytes_per_user_round": self.bytes_per_user_round,
            "words_per_user_round": self.words_per_user_round,
            "down_bytes_per_user_round": self.down_bytes_per_user_round,
            "secure_sum": asdict(self.secure_sum),
            "failed_rounds": {"rounds": list(self.failed_rounds), "counted_as": self.counted_as},
            "warnings": list(self.warnings),
            "rounds": [asdict(line) for line in self.rounds],
            "histogram" if self.is_histogram else "heavy_hitters": [
                line.to_json(self.truth is not None) for line in self.items
            ],
            **({"truth": asdict(self.truth)} if self.truth else {}),
        }

    def _repr_html_(self) -> str:
        rows = [
            (line.item, f"{line.estimate:,.0f}", f"± {line.stderr:,.0f}", line.rounds)
            for line in self.items[:_LINES]
        ]
        goal = "error" if self.is_histogram else "threshold"
        lead = f"{self.users:,} users in {len(self.rounds)} of {self.plan.rounds} rounds, "
        lead += f"{self.plan.method.name}, {goal} {self.plan.cutoff:,}"
        heads = ("item", "estimate", "standard error", "rounds")
        warnings = "".join(f"<p><b>{escape(text)}</b></p>" for text in self.warnings)
        more = max(len(self.items) - _LINES, 0)
        return f"<p>{lead}</p>{warnings}{markup.table(heads, rows, more)}"


def outcome_of(
    server: Server,
    failed: FailedRounds = "scale",
    *,
    source: str | None = None,
    secure_sum: SumFacts | None = None,
    candidates: Iterable[Any] = (),
    truth: Mapping[str, Any] | None = None,
    everything: bool = False,
) -> Outcome:
    """Return all that can be said of a campaign.

    Items below the threshold, or below a histogram's error, are left out unless `everything` is
    asked for: a single person may have them. `truth` is what `score.truth_of` kept of it.
    """
    plan, asked = server.plan, list(candidates)
    secure_sum = secure_sum or SumFacts()
    answer = server.heavy_hitters if plan.error is None else server.histogram
    found = items = [Found.of(line, plan.keys) for line in answer(failed, asked)]
    if everything:
        items = [Found.of(line, plan.keys) for line in server.histogram(failed, asked)]
    elif plan.error is not None:
        items = [line for line in found if line.estimate >= plan.error]
    if truth:
        counts = dict(map(tuple, truth["after"]))
        items = [replace(line, true_count=counts.get(line.item)) for line in items]
    return Outcome(
        source=source,
        plan=plan,
        secure_sum=secure_sum,
        failed_rounds=tuple(server.failed_rounds),
        counted_as=failed,
        warnings=tuple(_warnings(plan, server.rounds, secure_sum)),
        rounds=tuple(RoundFacts.of(closed) for closed in server.rounds),
        items=tuple(items),
        truth=score(plan, found, truth) if truth else None,
    )


def outcome_in(
    transcript: Transcript,
    failed: FailedRounds = "scale",
    server: Server | None = None,
    *,
    everything: bool = False,
    check: bool = True,
) -> Outcome:
    """Return all that can be said of a campaign from its transcript alone.

    `check` compares with the truth, if the transcript has it. `server` saves decoding it again.
    """
    return outcome_of(
        server or transcript.server(),
        failed,
        source=transcript.fact("source"),
        secure_sum=SumFacts(
            **(transcript.fact("secure_sum") or {}), **(transcript.fact("secure_sum_bytes") or {})
        ),
        candidates=map(transcript.plan.keys.from_json, transcript.fact("candidates") or ()),
        truth=transcript.fact("truth") if check else None,
        everything=everything,
    )


def _warnings(plan: Plan, rounds: Sequence[Round], secure: SumFacts) -> list[str]:
    """Say what makes the numbers worth less than they look."""
    warnings = []
    if len(rounds) < plan.rounds:
        warnings.append(
            f"{len(rounds)} of {plan.rounds} rounds are closed: counts are of their users."
        )
    if secure.dropout:
        users = sum(closed.users for closed in rounds)
        warnings.append(
            f"Users dropped out: counts are of the {users:,} who took part, a truth is of all."
        )
    aborted = [closed.task.round for closed in rounds if closed.failure]
    if aborted:
        warnings.append(
            f"Rounds without a sum: {', '.join(map(str, aborted))}; their users are not counted."
        )
    decoded = [closed for closed in rounds if closed.status == "complete"]
    if rounds and not decoded:
        advice = "" if len(aborted) == len(rounds) else " Raise the budget."
        warnings.append(f"No round decoded, so nothing can be said.{advice}")
    return warnings + (plan.method.warnings(plan, decoded) if decoded else [])
