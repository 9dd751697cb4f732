"""A population of people who each type one English word, by the words' real frequencies."""

import numpy as np

from linsketch import hashing
from linsketch.errors import DataError
from linsketch.hashing import Seeds
from linsketch.keys import Utf8Keys
from linsketch.population.simulated import Population
from linsketch.randomness import user_ids

LONGEST = 12  # bytes
IMPOLITE = ("fuck", "shit", "cunt", "nigg", "bitch", "porn")  # a page to show a colleague


def typists(rounds: int, users_per_round: int, seed: bytes) -> Population:
    """Draw a word for each of rounds * users_per_round people."""
    try:
        from wordfreq import get_frequency_dict
    except ImportError:
        raise DataError("The demo needs a word list: pip install '.[demo]' in a clone.") from None
    frequencies = {
        word: frequency
        for word, frequency in get_frequency_dict("en", "large").items()
        if len(word.encode()) <= LONGEST and not any(part in word for part in IMPOLITE)
    }
    people = rounds * users_per_round
    weights = np.cumsum(list(frequencies.values()))
    users = user_ids([str(person) for person in range(people)], seed)
    (tweak,) = Seeds(seed).integers("typed", 1)
    draws = hashing.mix(users ^ np.uint64(tweak)) * 2.0**-64 * weights[-1]
    word_of_user = np.searchsorted(weights, draws, side="right").clip(max=len(weights) - 1)
    used, item_of_row = np.unique(word_of_user, return_inverse=True)
    words = list(frequencies)
    return Population.from_rows(
        Utf8Keys(LONGEST),
        [words[number] for number in used],
        item_of_row,
        users,
        np.arange(people),
        np.ones(people, np.int64),
        rounds,
        seed,
    )
