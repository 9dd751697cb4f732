"""Settings for all tests: no clocks, and the same examples in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "linsketch",
    deadline=None,  # the first example may compile a kernel
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("linsketch")
