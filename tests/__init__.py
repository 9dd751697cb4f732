"""Tests at three depths: oracles, laws, seeded statistics."""
