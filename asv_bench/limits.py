"""The limits of the machine for the tables, measured if there is a C compiler."""

from benchmarks.common import Limits, NoLimitsError, ratio
from printing import report

from gzkcore._compiled.dispatch import ISA


def limits_or_none():
    """Return the probe of the machine's limits, or None with a word on stderr."""
    try:
        return Limits(ISA)
    except NoLimitsError as error:
        report(f"no limits: {error}")
        return None


def share(times, limit, done, call, amount):
    """Return in percent how much of a limit (`done` work in its time) a call's `amount` reaches."""
    return 100 * amount / done * ratio(times, limit, call)[0]
