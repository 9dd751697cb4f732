"""Slots for the known, slices for the unknown: what a campaign knows, and asks next."""

from linsketch.methods.slots.evidence import Evidence
from linsketch.methods.slots.method import Slots
from linsketch.methods.slots.rules import DiscoveryRule, SlotRule

__all__ = ["DiscoveryRule", "Evidence", "SlotRule", "Slots"]
