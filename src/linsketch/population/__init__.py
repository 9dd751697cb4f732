"""Populations to run campaigns on: files of who-has-what, simulated users, lists of clients."""

from linsketch.population.clients import Clients
from linsketch.population.rehearsal import Rehearsal
from linsketch.population.simulated import Population

__all__ = ["Clients", "Population", "Rehearsal"]
