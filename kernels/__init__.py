"""Kernels: the geometry of a call, its tiles, and for each tile the instructions; references to check them by."""
