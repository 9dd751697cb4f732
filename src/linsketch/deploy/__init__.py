"""Campaigns where the data is: on the machines of others."""
