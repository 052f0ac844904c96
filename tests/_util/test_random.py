"""One place turns random states into streams; a known-answer file pins them."""

import csv
from pathlib import Path

import numpy as np
import pytest

from gzkcore._util.random import as_seed_sequence, generator

STATES = {
    "int": lambda seed: seed,
    "numpy-int": np.int64,
    "sequence": np.random.SeedSequence,
    "child": lambda seed: np.random.SeedSequence(seed, spawn_key=(3,)),
    "generator": np.random.default_rng,
    "random-state": np.random.RandomState,
}
WORDS = 4


def known_answers():
    """Read (kind of state, seed, first words of its stream of 32-bit integers)."""
    with (Path(__file__).parents[1] / "data" / "draws.csv").open(newline="") as file:
        return [
            (row["state"], int(row["seed"]), [int(row[f"word{i}"]) for i in range(WORDS)])
            for row in csv.DictReader(file)
        ]


def words(state):
    return generator(state).integers(0, 2**32, size=WORDS, dtype=np.uint32).tolist()


@pytest.mark.parametrize(("kind", "seed", "expected"), known_answers())
def test_known_answers(kind, seed, expected):
    """On the integer stream: NumPy may change how it makes normals, not this."""
    assert words(STATES[kind](seed)) == expected


def test_the_file_has_every_kind():
    assert {kind for kind, _, _ in known_answers()} == set(STATES)


def test_what_is_the_same():
    assert words(5) == words(np.int64(5))
    assert words(5) != words(6)


def test_a_seed_gives_other_draws_than_numpys():
    """Directions of seed 0 that are the very points which seed 0 drew would meet their spikes."""
    theirs = np.random.default_rng(0).integers(0, 2**32, size=WORDS, dtype=np.uint32)
    assert words(0) != theirs.tolist()


@pytest.mark.parametrize("source", [np.random.default_rng(1), np.random.RandomState(1)], ids=str)
def test_a_generator_moves_on_by_128_bits(source):
    assert words(source) != words(source)


def test_a_seed_sequence_is_left_alone():
    sequence = np.random.SeedSequence(5)
    ours = as_seed_sequence(sequence)
    ours.spawn(3)
    assert sequence.n_children_spawned == 0
    assert words(sequence) == words(sequence)


def test_none_is_fresh():
    assert words(None) != words(None)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (-1, ValueError, r"random_state=-1 is negative; use an integer >= 0"),
        (1.5, TypeError, r"random_state=1.5 cannot seed random draws; use None, an integer >= 0"),
        ("seed", TypeError, r"random_state='seed' cannot seed"),
        (True, TypeError, r"random_state=True cannot seed"),
        ([1, 2], TypeError, r"random_state=\[1, 2\] cannot seed"),
    ],
)
def test_bad_states(state, error, message):
    with pytest.raises(error, match=message):
        as_seed_sequence(state)
