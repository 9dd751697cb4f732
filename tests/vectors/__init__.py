"""Committed test vectors, and the script that makes them."""
