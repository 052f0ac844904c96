"""What all tests share: hypothesis without a clock, and threads for small jobs too."""

from hypothesis import HealthCheck, settings

from gzkcore._util import threads

settings.register_profile(
    "gzkcore", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gzkcore")

# Data of tests are small: what threads may break is to be seen on them.
threads._WORTH_A_THREAD = 1 << 16
