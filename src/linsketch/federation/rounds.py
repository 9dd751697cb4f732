"""A round on its way: the secure sum's server, with nodes and requests instead of numbers."""

from collections.abc import Mapping
from typing import ClassVar

from linsketch.errors import ProtocolError, RoundFailed
from linsketch.federation.letters import Opening, Request
from linsketch.federation.terms import Terms
from linsketch.rings import Contribution
from linsketch.round import RoundTask
from linsketch.securesum import helper, masked


class RoundOnItsWay:
    """`requests` go out; `take` the answers; `advance` when the stage is over, until it is done."""

    stages: ClassVar[tuple[str, ...]]
    vector_stage: ClassVar[int]  # whose answers are the vectors: from then on its nodes are spent

    def __init__(
        self, terms: Terms, task: RoundTask, members: Mapping[int, int], nonce: bytes
    ) -> None:
        self.task = task
        self.members = members  # node: number
        self.at = 0  # stage
        self.result: Contribution | None = None
        self.failure = ""
        self.requests = {
            node: Request("open", Opening(task, nonce, number).to_text(terms))
            for node, number in members.items()
        }

    @property
    def stage(self) -> str:
        """What the answers to the requests are."""
        return self.stages[self.at]

    @property
    def asked_for_vectors(self) -> bool:
        """Whether vectors have been asked for: before that, nobody has given anything."""
        return self.at >= self.vector_stage

    @property
    def wants_vectors(self) -> bool:
        """Whether the requests ask for vectors."""
        return bool(self.requests) and self.at == self.vector_stage

    def advance(self) -> None:
        """Close the stage with the answers that came."""
        try:
            self.requests = self._advance()
            self.at += 1
        except (RoundFailed, ProtocolError) as error:
            self.fail(str(error))

    def fail(self, reason: str) -> None:
        """End the round without a sum."""
        self.requests, self.result, self.failure = {}, None, reason

    def take(self, node: int, frame: bytes) -> None:
        """Take a node's answer, or raise `ProtocolError` and change nothing."""
        raise NotImplementedError

    def _advance(self) -> dict[int, Request]:
        raise NotImplementedError


class MaskedRound(RoundOnItsWay):
    """Four messages a client."""

    stages = ("keys", "shares", "vectors", "unmasking")
    vector_stage = 2

    def __init__(
        self,
        terms: Terms,
        session: masked.MaskedSession,
        task: RoundTask,
        members: Mapping[int, int],
        nonce: bytes,
    ) -> None:
        super().__init__(terms, task, members, nonce)
        self._server = masked.MaskedServer(session, members.values())
        self._nodes = {number: node for node, number in members.items()}

    def take(self, node: int, frame: bytes) -> None:
        """Take a client's answer."""
        self._server.receive(self.members[node], frame)

    def _advance(self) -> dict[int, Request]:
        messages = self._server.advance()
        self.result = self._server.result
        return {self._nodes[number]: Request("step", frame=m) for number, m in messages.items()}


class HelperRound(RoundOnItsWay):
    """One message a client, and one to the helper."""

    stages = ("vectors", "masks")
    vector_stage = 0

    def __init__(
        self,
        terms: Terms,
        session: helper.HelperSession,
        task: RoundTask,
        members: Mapping[int, int],
        nonce: bytes,
        helper_node: int,
    ) -> None:
        super().__init__(terms, task, members, nonce)
        self._server = helper.HelperServer(session, members.values())
        self._opening = Opening(task, nonce, 0).to_text(terms)
        self._helper_node = helper_node

    def take(self, node: int, frame: bytes) -> None:
        """Take a client's vector, or the helper's sum of masks."""
        if self.at == self.vector_stage:
            self._server.receive(self.members[node], frame)
        else:
            self.result = self._server.finish(frame)

    def _advance(self) -> dict[int, Request]:
        if self.at == self.vector_stage:
            return {self._helper_node: Request("masks", self._opening, self._server.request())}
        if self.result is None:
            raise RoundFailed("The helper did not send the sum of the masks.")
        return {}
