"""Property tests judge what is right, not how long a busy machine takes to draw an example."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "conv2gpt", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("conv2gpt")
