"""Slots for the known, slices for the unknown: what a campaign knows, and asks next."""

from linsketch.server.slots.evidence import Evidence, evidence
from linsketch.server.slots.rules import DiscoveryRule, SlotRule, next_slots_task

__all__ = ["DiscoveryRule", "Evidence", "SlotRule", "evidence", "next_slots_task"]
