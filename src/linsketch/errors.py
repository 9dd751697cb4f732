"""What can go wrong, for people: what it was, what is allowed, what to do."""


class LinsketchError(Exception):
    """Base of every error that linsketch raises on purpose."""


class PlanningError(LinsketchError, ValueError):
    """A table, ring or sampling rule that cannot work was asked for."""


class ItemError(LinsketchError, ValueError):
    """An item lies outside the domain that the keys were planned for."""


class CountError(LinsketchError, ValueError):
    """A count is negative, fractional or too large for the ring."""


class VectorError(LinsketchError, ValueError):
    """A vector does not belong to the ring it was used with."""


class WireError(LinsketchError, ValueError):
    """Bytes are not what a peer with the same plan would have sent."""


class TaskError(LinsketchError, ValueError):
    """A round's task does not fit the plan that a client or server holds."""


class TranscriptError(LinsketchError):
    """A transcript cannot be read, or belongs to another campaign."""


class DataError(LinsketchError, ValueError):
    """A file of who-has-what cannot be used as it is."""


class ClusterError(LinsketchError):
    """A cluster that cannot be reached, or that did not finish its work."""


class ProtocolError(LinsketchError):
    """A message of a secure sum that is not what the protocol asks for; it changes nothing."""


class RefusalError(ProtocolError):
    """A client does not do what it was asked, because the answer could show its vector."""


class FederationError(LinsketchError):
    """A campaign over real nodes cannot go on; what is closed is kept."""


class RoundFailed(LinsketchError):  # noqa: N818  # an outcome, not a mistake
    """A round of a secure sum ended without a sum; its cohort is not to be asked again."""
