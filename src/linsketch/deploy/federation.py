"""The server of a campaign over real nodes, whoever carries the messages.

Rounds are those of `campaign.run`; what is added is that nodes are drawn, asked in stages with a
deadline, and spent once they have been asked for their vectors.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from linsketch.campaign import Progress
from linsketch.deploy.letters import Answer, Request
from linsketch.deploy.rounds import HelperRound, MaskedRound, RoundOnItsWay
from linsketch.deploy.terms import Terms
from linsketch.errors import FederationError, ProtocolError, RoundFailed
from linsketch.securesum.helper import Challenge
from linsketch.server import Server
from linsketch.task import RoundTask
from linsketch.transcript import Transcript

_LOOK = 0.5  # seconds between looks for nodes
_SETTLED = 5.0  # seconds after which no more nodes are expected
_LONG = 200  # characters of a refusal
_SPENT = "asked"  # the transcript's list of nodes that were asked for vectors


class Transport(Protocol):
    """Carries requests to nodes and brings what they answer."""

    def nodes(self) -> set[int]:
        """Return the nodes that are connected."""
        ...

    def exchange(
        self, requests: Sequence[tuple[int, Request]], seconds: float
    ) -> Iterator[tuple[int, Answer]]:
        """Send requests to nodes; yield the place of a request and its answer as they come.

        It ends when all have come, or the time is over.
        """
        ...


class Federation:
    """A campaign's server side. A process that is killed goes on from the transcript.

    A round that was open then is opened again, with other nodes if its own had been asked for
    their vectors.
    """

    def __init__(
        self,
        terms: Terms,
        transport: Transport,
        transcript: Transcript,
        *,
        watch: Callable[[Progress], None] = lambda _: None,
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
        self._watch = watch
        self._say = say
        self._wait = wait
        self._helper_node = helper_node
        self._refused: dict[int, str] = {}  # nodes that are not asked again in this run, and why
        self._spent: list[int] = transcript.fact(_SPENT) or []

    def run(self) -> Server:
        """Run the rounds that are not closed yet, and return the server."""
        server = self._transcript.server(self.terms.update())
        if self.terms.protocol == "masked":
            self._helper_node = None
        elif not server.done and self._helper_node is None:
            self._helper_node = self._find_helper()
        while not server.done:
            for progress in [self._close(server, *each) for each in self._carried(server)]:
                self._watch(progress)  # when all are kept
        return server

    def _find_helper(self) -> int:
        """Ask every node what it is, once in a run; the helper has the key of the terms."""
        challenge = Challenge(self.terms.helper_key, self.terms.terms_id.encode())
        question = Request("role", frame=challenge.public)
        requests = [(node, question) for node in self._connected(self.terms.least + 1, 2**63)]
        for place, answer in self._transport.exchange(requests, self.terms.stage_seconds):
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

        Waits for as many as can be used; with fewer, until no more come; with too few, in vain.
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

    def _carried(self, server: Server) -> list[tuple[RoundOnItsWay, dict[str, float]]]:
        """Carry the next round to its end; without adaptive tasks, all that there are nodes for.

        A round that fails before it has asked for vectors has cost nobody anything: it is opened
        again with other nodes, as long as there are some.
        """
        first = server.open_round()
        ahead = 1 if self.terms.plan.interactive else self.terms.plan.rounds - len(server.rounds)
        tasks = [replace(first, round=first.round + offset) for offset in range(ahead)]
        carried: dict[int, tuple[RoundOnItsWay, dict[str, float]]] = {}
        while tasks and (rounds := self._staffed(tasks)):
            seconds = self._carry(rounds)
            carried |= {round_.task.round: (round_, seconds) for round_ in rounds}
            tasks = [round_.task for round_ in rounds if not round_.asked_for_vectors]
        begun = [number for number, (round_, _) in carried.items() if round_.asked_for_vectors]
        if not begun:
            raise self._too_few(server)
        return [carried[number] for number in range(first.round, max(begun) + 1)]

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

    def _too_few(self, server: Server) -> FederationError:
        """Return the error that ends a run whose next round cannot be staffed."""
        plan, closed = self.terms.plan, len(server.rounds)
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
        nonce = secrets.token_bytes(16)
        if self._helper_node is not None:
            return HelperRound(self.terms, task, members, nonce, self._helper_node)
        return MaskedRound(self.terms, task, members, nonce)

    def _carry(self, rounds: list[RoundOnItsWay]) -> dict[str, float]:
        """Carry rounds side by side through their stages; return the seconds of each stage."""
        seconds: dict[str, float] = {}
        while open_rounds := [round_ for round_ in rounds if round_.requests]:
            stage, start = open_rounds[0].stage, time.monotonic()
            spent = [node for r in open_rounds if r.wants_vectors for node in r.requests]
            if spent:  # before any vector can leave
                self._spent += spent
                self._transcript.keep_fact(_SPENT, self._spent)
            self._exchange(open_rounds)
            for round_ in open_rounds:
                round_.advance()
            seconds[stage] = time.monotonic() - start
        return seconds

    def _exchange(self, rounds: list[RoundOnItsWay]) -> None:
        sent = [(round_, node) for round_ in rounds for node in round_.requests]
        silent = {node for round_, node in sent if not round_.asked_for_vectors}
        requests = [(node, round_.requests[node]) for round_, node in sent]
        for place, answer in self._transport.exchange(requests, self.terms.stage_seconds):
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

    def _close(self, server: Server, round_: RoundOnItsWay, seconds: dict[str, float]) -> Progress:
        """Close a round, durably."""
        start = time.monotonic()
        total, closed = round_.result, None
        if total:
            try:
                closed = server.close_round(round_.task, total.vector, total.users)
            except RoundFailed as failure:
                round_.fail(str(failure))
        if not closed:
            total, closed = None, server.abort_round(round_.task, round_.failure)
        self._transcript.add(round_.task, total, closed.failure)
        took = {**seconds, "decoding": time.monotonic() - start}
        return Progress(server, closed, len(round_.members), took)


def _quoted(reason: object) -> str:
    """Return what a node may have written as one short line in quotes."""
    return repr(str(reason)[:_LONG])
