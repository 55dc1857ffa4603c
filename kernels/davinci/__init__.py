"""Kernels of the Da Vinci family: convolutions and products for cube cores, helpers for vector cores."""
