"""Items and keys: injective maps between what a user has and rows of ring elements (limbs).

Law: `space.decode(space.encode(items).keys) == items` for every item of the domain. A limb lies
below its bound, and a bound never exceeds 2**61, so that a prime of at most 62 bits holds it.
"""

from collections.abc import Callable
from typing import Any

from linsketch.errors import PlanningError
from linsketch.keys.base import Encoded, KeySpace, Outside, distinct_keys
from linsketch.keys.index import KeyIndex
from linsketch.keys.integers import IntKeys
from linsketch.keys.strings import BytesKeys, Utf8Keys
from linsketch.keys.texts import ROOT, TextKeys

__all__ = [
    "ROOT",
    "BytesKeys",
    "Encoded",
    "IntKeys",
    "KeyIndex",
    "KeySpace",
    "Outside",
    "TextKeys",
    "Utf8Keys",
    "distinct_keys",
    "parse_keys",
]


def parse_keys(name: str) -> KeySpace[Any]:
    """Return the space of a name: utf8:20, bytes:20, int:32, text:3 (of ROOT) or text:3:ALPHABET.

    >>> parse_keys("utf8:20")
    Utf8Keys(max_bytes=20)
    """
    kind, _, rest = name.partition(":")
    number, _, alphabet = rest.partition(":")
    if kind in ("utf8", "bytes", "int", "text") and number.isdecimal() and number.isascii():
        if kind == "text":
            return TextKeys(alphabet or ROOT, int(number))
        if not alphabet:
            kinds: dict[str, Callable[[int], KeySpace[Any]]]
            kinds = {"utf8": Utf8Keys, "bytes": BytesKeys, "int": IntKeys}
            return kinds[kind](int(number))
    raise PlanningError(
        f"Keys are utf8:BYTES, bytes:BYTES, text:CHARACTERS or int:BITS, like utf8:20, "
        f"not {name!r}."
    )
