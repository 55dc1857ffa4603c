"""Settings of the property tests: loops in Python have no deadline on a busy machine."""

from hypothesis import settings

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")
