"""The package's warnings: shown, or collected by the thread that asks for it, and by no other."""

import threading
import warnings

import pytest

from gzkcore._util.warn import Caught, collected_warnings, warn


class Doubt(UserWarning):
    pass


def doubtful():
    warn("perhaps", Doubt, stacklevel=2)


def test_it_is_shown_where_it_belongs():
    with pytest.warns(Doubt, match="^perhaps$") as shown:
        doubtful()
    assert shown[0].filename == __file__


def test_it_is_collected():
    with collected_warnings() as outer:
        doubtful()
        with collected_warnings() as inner:
            doubtful()
            warn("rather")
        doubtful()
    assert inner == [Caught("perhaps", Doubt), Caught("rather", UserWarning)]
    assert outer == [Caught("perhaps", Doubt)] * 2
    with pytest.warns(Doubt):
        doubtful()


def test_it_is_shown_again_after_an_error():
    with pytest.raises(ZeroDivisionError), collected_warnings():
        _ = 1 / 0
    with pytest.warns(Doubt):
        doubtful()


def test_other_threads_show_theirs():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with collected_warnings() as collected:
            thread = threading.Thread(target=doubtful)
            thread.start()
            thread.join()
    assert not collected
    assert [each.category for each in shown] == [Doubt]
