"""What all tests share: hypothesis without a clock, and threads for small jobs too."""

import os

from hypothesis import HealthCheck, settings

from gzkcore._util import threads

settings.register_profile(
    "gzkcore", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gzkcore")

# Data of tests are small: what threads may break is to be seen on them.
threads._WORTH_A_THREAD = 1 << 16

# Tests that run side by side share the processors; those of threads ask for as many as they want.
SHARE = threads._usable_processors() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
threads._usable_processors = lambda: max(1, SHARE)
