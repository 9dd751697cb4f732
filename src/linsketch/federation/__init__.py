"""Campaigns over real clients: terms, letters, nodes, and a source that asks them."""
