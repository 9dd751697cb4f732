"""A federation: a source whose sums come from real nodes, whatever carries the letters.

Nodes are drawn, asked in stages with a deadline, and spent once they have been asked for their
vectors.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from linsketch.campaign import Gathered
from linsketch.errors import FederationError, ProtocolError, RoundFailed
from linsketch.federation.letters import Answer, Request
from linsketch.federation.rounds import HelperRound, MaskedRound, RoundOnItsWay
from linsketch.federation.terms import HelperTerms, MaskedTerms, Terms
from linsketch.plan import Plan
from linsketch.records.transcript import Transcript
from linsketch.round import RoundTask
from linsketch.securesum.helper import Challenge

_LOOK = 0.5  # seconds between looks for nodes
_SETTLED = 5.0  # seconds after which no more nodes are expected
_LONG = 200  # characters of a refusal
_SPENT = "asked"  # the transcript's list of nodes that were asked for vectors


class Transport(Protocol):
    """Carries letters to nodes and brings what they answer: bytes that it need not understand."""

    def nodes(self) -> set[int]:
        """Return the nodes that are connected."""
        ...

    def exchange(
        self, letters: Sequence[tuple[int, bytes]], seconds: float
    ) -> Iterator[tuple[int, bytes]]:
        """Send letters to nodes; yield the place of a letter and its answer as they come.

        It ends when all have come, or the time is over.
        """
        ...


class Federation:
    """The nodes of a campaign, as a source of sums. A process that is killed goes on.

    A round that was open then is opened again, with other nodes if its own had been asked for
    their vectors: the transcript keeps who was.
    """

    def __init__(
        self,
        terms: Terms,
        transport: Transport,
        transcript: Transcript,
        *,
        say: Callable[[str], None] = lambda _: None,
        wait: float = 60.0,
        helper_node: int | None = None,
    ) -> None:
        if transcript.plan != terms.plan or transcript.fact("terms") not in (None, terms.terms_id):
            raise FederationError(f"{transcript.path} is the transcript of other terms.")
        transcript.keep_fact("terms", terms.terms_id)
        self.terms = terms
        self._transport = transport
        self._transcript = transcript
        self._say = say
        self._wait = wait
        self._helper_node = helper_node if isinstance(terms.secure_sum, HelperTerms) else None
        self._refused: dict[int, str] = {}  # nodes that are not asked again in this run, and why
        self._spent: list[int] = transcript.fact(_SPENT) or []

    def gather(self, plan: Plan, tasks: Iterator[RoundTask]) -> list[Gathered]:
        """Carry rounds to their ends, side by side: all that there are nodes for.

        A round that fails before it has asked for vectors has cost nobody anything: it is opened
        again with other nodes, as long as there are some.
        """
        if plan != self.terms.plan:
            raise FederationError("These nodes have accepted another plan.")
        if self._helper_node is None and isinstance(self.terms.secure_sum, HelperTerms):
            self._helper_node = self._find_helper(self.terms.secure_sum)
        wanted = list(tasks)
        first = wanted[0].round
        carried: dict[int, Gathered] = {}
        begun = 0
        while wanted and (rounds := self._staffed(wanted)):
            seconds = self._carry(rounds)
            carried |= {r.task.round: _gathered(r, seconds) for r in rounds}
            begun = max([begun, *(r.task.round for r in rounds if r.asked_for_vectors)])
            wanted = [r.task for r in rounds if not r.asked_for_vectors]
        if not begun:
            raise self._too_few(first)
        return [carried[number] for number in range(first, begun + 1)]

    def _find_helper(self, own: HelperTerms) -> int:
        """Ask every node what it is, once in a run; the helper has the key of the terms."""
        challenge = Challenge(own.key, self.terms.terms_id.encode())
        question = Request("role", frame=challenge.public)
        requests = [(node, question) for node in self._connected(self.terms.least + 1, 2**63)]
        for place, answer in self._exchange(requests):
            if challenge.met(answer.frame):
                return requests[place][0]
            if answer.refusal:
                self._say(
                    f"looking for the helper: node {requests[place][0]}: {_quoted(answer.refusal)}"
                )
        raise FederationError(
            f"None of {len(requests)} nodes proved to be the helper of the terms. Start it with "
            'role="helper" and its key in --node-config.'
        )

    def _connected(self, least: int, most: int) -> list[int]:
        """Return the nodes that can be asked.

        Waits until there are as many as can be used, or until no more come, or until time is up.
        """
        start = changed = time.monotonic()
        known = -1
        while True:
            away = {*self._spent, *self._refused, self._helper_node}
            nodes = [node for node in self._transport.nodes() if node not in away]
            now = time.monotonic()
            if len(nodes) != known:
                known, changed = len(nodes), now
            settled = known >= least and now - changed >= _SETTLED
            if known >= most or settled or now - start >= self._wait:
                return nodes
            time.sleep(_LOOK)

    def _staffed(self, tasks: list[RoundTask]) -> list[RoundOnItsWay]:
        """Draw nodes for rounds, for as many of them as there are nodes."""
        least, most = self.terms.least, self.terms.plan.users_per_round
        nodes = self._connected(least * len(tasks), most * len(tasks))
        secrets.SystemRandom().shuffle(nodes)
        numbers = {node: number for number, node in enumerate(nodes, len(self._spent))}
        cohorts = [nodes[place * most :][:most] for place in range(len(tasks))]
        return [
            self._round(task, {node: numbers[node] for node in drawn})
            for task, drawn in zip(tasks, cohorts, strict=True)
            if len(drawn) >= least
        ]

    def _too_few(self, first: int) -> FederationError:
        """Return the error that ends a run whose next round cannot be staffed."""
        plan, closed = self.terms.plan, first - 1
        there = len(self._transport.nodes() - {*self._spent, *self._refused, self._helper_node})
        text = f"Round {closed + 1} of {plan.rounds} takes {self.terms.least} to "
        text += f"{plan.users_per_round} clients that can be asked; connected: {there}."
        if self._spent:
            text += f" {len(self._spent)} were asked in rounds before, closed or interrupted."
        if self._refused:
            text += f" {len(self._refused)} do not take part, like this: "
            text += f"{next(iter(self._refused.values()))}."
        return FederationError(
            f"{text} Start more, or mend those, and run again: nothing is lost, closed rounds "
            f"({closed}) are kept."
        )

    def _round(self, task: RoundTask, members: dict[int, int]) -> RoundOnItsWay:
        terms, own, nonce = self.terms, self.terms.secure_sum, secrets.token_bytes(16)
        if isinstance(own, MaskedTerms):
            return MaskedRound(terms, own.session(terms, task, nonce), task, members, nonce)
        assert self._helper_node is not None  # noqa: S101  # found before any round
        session = own.session(terms, task, nonce)
        return HelperRound(terms, session, task, members, nonce, self._helper_node)

    def _carry(self, rounds: list[RoundOnItsWay]) -> dict[str, float]:
        """Carry rounds side by side through their stages; return the seconds of each stage."""
        seconds: dict[str, float] = {}
        while open_rounds := [round_ for round_ in rounds if round_.requests]:
            stage, start = open_rounds[0].stage, time.monotonic()
            spent = [node for r in open_rounds if r.wants_vectors for node in r.requests]
            if spent:  # before any vector can leave
                self._spent += spent
                self._transcript.keep_fact(_SPENT, self._spent)
            self._ask(open_rounds)
            for round_ in open_rounds:
                round_.advance()
            seconds[stage] = time.monotonic() - start
        return seconds

    def _ask(self, rounds: list[RoundOnItsWay]) -> None:
        """Send the requests of rounds, and let them take the answers."""
        sent = [(round_, node) for round_ in rounds for node in round_.requests]
        silent = {node for round_, node in sent if not round_.asked_for_vectors}
        requests = [(node, round_.requests[node]) for round_, node in sent]
        for place, answer in self._exchange(requests):
            round_, node = sent[place]
            try:
                if answer.refusal:
                    raise ProtocolError(answer.refusal)
                round_.take(node, answer.frame)
                silent.discard(node)
            except (ProtocolError, RoundFailed) as error:  # costs this node's contribution
                reason = _quoted(error)
                self._say(f"round {round_.task.round}, {round_.stage}: node {node}: {reason}")
                self._refused[node] = reason
        self._refused = {**dict.fromkeys(silent, "no answer in time"), **self._refused}

    def _exchange(self, requests: list[tuple[int, Request]]) -> Iterator[tuple[int, Answer]]:
        """Send requests; what comes back and is no answer is a refusal."""
        letters = [(node, request.to_bytes()) for node, request in requests]
        for place, letter in self._transport.exchange(letters, self.terms.stage_seconds):
            try:
                answer = Answer.from_bytes(letter)
            except ProtocolError as error:
                answer = Answer(refusal=str(error))
            yield place, answer


def _gathered(round_: RoundOnItsWay, seconds: dict[str, float]) -> Gathered:
    sums = (round_.result,) if round_.result else ()
    return Gathered(round_.task, sums, round_.failure, len(round_.members), seconds)


def _quoted(reason: object) -> str:
    """Return what a node may have written as one short line in quotes."""
    return repr(str(reason)[:_LONG])
