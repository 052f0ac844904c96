"""Formulas and mirrors on the same numbers, in any array, and on numbers that nobody wants."""

import numpy as np
import pytest
from fuzzing import EXTREME, FORMS, REFUSALS, counted, in_form, often, quietly, seldom, worst
from hypothesis import given
from hypothesis import strategies as st
from test_twins import (
    KERNEL,
    VALUES,
    both,
    call,
    compare,
    fast_gaussian,
    reference_gaussian,
    type_of,
)


def arrays_of(arg):
    """Return the array that an argument is, or those of a list, or none."""
    return [a for a in (arg if isinstance(arg, list) else [arg]) if isinstance(a, np.ndarray)]


def in_any_form(where, args, data):
    """Yield the same arguments with their arrays in each form, and in several."""
    places = [i for i, arg in enumerate(args) if arrays_of(arg)]
    forms = [[form] * len(places) for form in FORMS] if places else [[]]
    if len(places) > 1:
        forms.append([data.draw(st.sampled_from(sorted(FORMS))) for _ in places])
    for chosen in forms:
        given = list(args)
        for place, form in zip(places, chosen, strict=True):
            made = [in_form(array.copy(), form) for array in arrays_of(args[place])]
            given[place] = made if isinstance(args[place], list) else made[0]
        counted("mirrors beside formulas", (where, chosen))
        yield given
        for place in places:
            for made, array in zip(arrays_of(given[place]), arrays_of(args[place]), strict=True):
                assert np.array_equal(made, array)  # nobody's data are written to


def agree(where, data):
    args = data.draw(VALUES[where][0])
    counted("drawn arguments of formulas", where)
    worst(where, compare(where, args, in_any_form(where, args, data)))


# Formulas that take ten to a hundred times as long as others.
SLOW = {"gegenbauer.gegenbauer_features", "series.radial_series", "theory.dot_product_directions"}


@pytest.mark.parametrize("where", [where for where in VALUES if where not in SLOW])
@often
@given(data=st.data())
def test_twins_agree_whatever_the_arrays(where, data):
    agree(where, data)


@pytest.mark.parametrize("where", sorted(SLOW))
@seldom
@given(data=st.data())
def test_slow_twins_agree_whatever_the_arrays(where, data):
    agree(where, data)


def spoiled(arg, data):
    """Return an argument made hostile: other numbers, shapes and types."""
    if isinstance(arg, np.ndarray) and arg.size:
        how = data.draw(st.sampled_from(["scale", "entry", "short", "flat", "type", "whole"]))
        if how == "scale" and arg.dtype.kind == "f":
            with np.errstate(all="ignore"):
                return (arg * data.draw(st.sampled_from(EXTREME))).astype(arg.dtype)
        if how == "entry":
            made = arg.copy()
            place = data.draw(st.integers(0, arg.size - 1))
            values = [*EXTREME, np.nan, np.inf] if arg.dtype.kind == "f" else [-1, 100, 5000, 2**30]
            value = data.draw(st.sampled_from(values))
            with np.errstate(all="ignore"):
                made.flat[place] = np.asarray(value).astype(arg.dtype)
            return made
        if how == "short":
            return arg[: data.draw(st.integers(0, len(arg)))] if arg.ndim else arg
        if how == "flat":
            return arg.ravel()
        if how == "type":
            with np.errstate(all="ignore"):
                return arg.astype(data.draw(st.sampled_from(["i1", "f4", "O", "c8", "U9", ">f8"])))
    if isinstance(arg, bool) or arg is KERNEL or not isinstance(arg, int):
        return arg
    return data.draw(st.sampled_from([arg, -1, 0, arg + 1, 3 * arg]))


def numbers(found):
    """Return an answer as numbers in double, of whatever type."""
    return np.asarray(found, dtype=complex if np.iscomplexobj(found) else float)


@pytest.mark.parametrize("where", VALUES)
@often
@given(data=st.data())
def test_mirrors_refuse_or_answer(where, data):
    formula, mirror = both(where)
    args = [spoiled(arg, data) for arg in data.draw(VALUES[where][0])]
    counted("hostile arguments of mirrors", (where, args))
    with quietly():
        try:
            found = numbers(call(mirror, args, fast_gaussian))
        except REFUSALS as error:
            assert str(error)
            return
        # Twice the same: nothing that was never written is read.
        np.testing.assert_array_equal(numbers(call(mirror, args, fast_gaussian)), found)
        try:
            expected = numbers(call(formula, args, reference_gaussian))
        except Exception:  # noqa: BLE001  formulas check nothing
            return
    if expected.size or found.size:
        assert found.shape == expected.shape
    most = np.finfo(type_of(args)).max ** 0.5
    given = [arg for arg in args if isinstance(arg, np.ndarray) and arg.size]
    given = [np.abs(arg).max() for arg in given if arg.dtype.kind in "iuf"]
    if all(size < most for size in given):
        assert not np.isnan(found[np.abs(expected) < most]).any(), (found, expected)
