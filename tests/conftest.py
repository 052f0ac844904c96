"""What all tests share: hypothesis without a clock, for machines that do other work too."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "gzkcore", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gzkcore")
