"""Nodes in one process, with faults, for tests of federations."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from linsketch import (
    Clients,
    Contribution,
    Plan,
    RoundTask,
    Server,
    Transcript,
    Utf8Keys,
    campaign,
    plan_campaign,
)
from linsketch.campaign import Progress
from linsketch.federation.host import Federation
from linsketch.federation.letters import Answer, Request
from linsketch.federation.node import Device, HelperNode, Node
from linsketch.federation.terms import HelperTerms, Terms
from linsketch.round import RoundSketch
from linsketch.securesum import ClearSum, MemoryLedger

KEY = X25519PrivateKey.generate()
DRINKS = ("tea", "milk", "coffee", "maté")


def plan_of(method: str = "unsampled", rounds: int = 3, users: int = 5, **more: Any) -> Plan:
    """Return a small plan; unsampled, so that contributions can be computed again."""
    numbers: dict[str, Any] = {"items_per_user": 3, "threshold": 4, **more}
    return plan_campaign(
        rounds=rounds,
        users_per_round=users,
        keys=Utf8Keys(8),
        seed=b"federation",
        method=method,
        **numbers,
    ).plan.for_clients()


def terms_of(protocol: str, plan: Plan | None = None) -> Terms:
    """Return terms of either protocol; masked ones with room for a few dropouts."""
    plan = plan or plan_of()
    if protocol == "helper":
        return Terms.helper(plan, KEY.public_key().public_bytes_raw())
    return Terms.masked(plan, dropout=0.4, corrupt=0.0)


def items_of(node: int) -> list[str]:
    """Return a node's items."""
    return [DRINKS[0], DRINKS[1 + node % 3], f"n{node}"]


Fault = Callable[[int, Answer], Answer | bytes | None]
"""(stage, answer) to what arrives: another answer, bytes that are none, or nothing."""


class Village:
    """Nodes in one process; some have faults, and the power may fail."""

    def __init__(self, terms: Terms, count: int = 15) -> None:
        self.devices: dict[int, Node] = {
            node: Device(terms, partial(items_of, node), MemoryLedger())
            for node in range(100, 100 + count)
        }
        if isinstance(terms.secure_sum, HelperTerms):
            self.devices[7] = HelperNode(terms, KEY, MemoryLedger())
        self.memories: dict[int, bytes] = {}
        self.faults: dict[int, Fault] = {}
        self.exchanges: list[list[tuple[int, Request]]] = []
        self.power = 10**9  # exchanges until it fails
        self.stages: dict[int, int] = {}

    def nodes(self) -> set[int]:
        """Return all of them."""
        return set(self.devices)

    def exchange(
        self, letters: Sequence[tuple[int, bytes]], seconds: float
    ) -> Iterator[tuple[int, bytes]]:
        """Ask every node at once."""
        assert seconds > 0
        self.exchanges.append([(node, Request.from_bytes(letter)) for node, letter in letters])
        for place, (node, request) in enumerate(self.exchanges[-1]):
            stage = self.stages.get(node, 0) + 1 if request.kind == "step" else 0
            self.stages[node] = stage
            memory = self.memories.get(node, b"")
            answer, self.memories[node] = self.devices[node].answer(letters[place][1], memory)
            arrives: Answer | bytes | None = answer
            if node in self.faults:
                arrives = self.faults[node](stage, Answer.from_bytes(answer))
            if len(self.exchanges) > self.power:
                raise KeyboardInterrupt
            if arrives is not None:
                yield place, arrives.to_bytes() if isinstance(arrives, Answer) else arrives


class Run:
    """A campaign over a village, with its transcript and what was said."""

    def __init__(self, terms: Terms, village: Village, path: Path) -> None:
        self.terms, self.village, self.path = terms, village, path
        self.said: list[str] = []
        self.helper_node: int | None = None
        self.watched: list[Progress] = []

    def __call__(self) -> Server:
        """Run what is left."""
        new = not self.path.exists()
        with Transcript.create(self.path, self.terms.plan) if new else Transcript(self.path) as t:
            federation = Federation(
                self.terms,
                self.village,
                t,
                say=self.said.append,
                wait=0,
                helper_node=self.helper_node,
            )
            return campaign.run(
                self.terms.plan, federation, transcript=t, watch=self.watched.append
            )

    @property
    def asked(self) -> list[int]:
        """Nodes that were asked for vectors, by number."""
        with Transcript(self.path) as transcript:
            asked: list[int] = transcript.fact("asked")
            return asked

    def cohorts(self) -> list[list[int]]:
        """Return the nodes of each closed round, as they were opened last."""
        opened: dict[int, list[int]] = {}
        for sent in self.village.exchanges:
            now: dict[int, list[int]] = {}
            for node, request in sent:
                if request.kind == "open":
                    now.setdefault(json.loads(request.opening)["task"]["round"], []).append(node)
            opened |= now
        return [opened[progress.closed.task.round] for progress in self.watched]


def clear_sum(plan: Plan, task: RoundTask, nodes: list[int]) -> Contribution:
    """Return what adding up in the clear gives."""
    crowd = Clients([dict.fromkeys(items_of(node), 1) for node in nodes])
    ring = RoundSketch.of(plan, task).ring
    return ClearSum()(ring, crowd.contributions(plan, task), b"")


def check_sums(run: Run, gone: set[int]) -> None:
    """Check that every sum is that of the round's nodes but for those that are gone."""
    with Transcript(run.path) as transcript:
        for (task, sums, _), nodes in zip(transcript.rounds(), run.cohorts(), strict=True):
            there = [node for node in nodes if node not in gone]
            assert sums == [clear_sum(run.terms.plan, task, there)]
