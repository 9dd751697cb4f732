"""Items and keys: injective maps between what a user has and rows of ring elements (limbs).

Law: `space.decode(space.encode(items).keys) == items` for every item of the domain. A limb lies
below its bound, and a bound never exceeds 2**61, so that a prime of at most 62 bits holds it.
"""

from linsketch.keys.base import Encoded, KeySpace, Outside
from linsketch.keys.integers import IntKeys
from linsketch.keys.strings import BytesKeys, Utf8Keys
from linsketch.keys.texts import ROOT, TextKeys

__all__ = ["ROOT", "BytesKeys", "Encoded", "IntKeys", "KeySpace", "Outside", "TextKeys", "Utf8Keys"]
