"""Names of cases."""

import re


def named(value):
    """Name a case the same in every process: functions without where they lie in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
