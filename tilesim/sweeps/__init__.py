"""Sweeps: one operator over many chips, tilings, data types and shapes, timed only.

A sweep is a `Call` (what all points share) and `Point`s (values of the varied fields). Points are run by this
process, by workers of this computer or by a cluster, and kept by a `Store`, from which a stopped sweep goes on.
"""
