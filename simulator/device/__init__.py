"""A device: a target with named arrays at addresses, and functions that run once a core."""
