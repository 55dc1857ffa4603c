"""Kernels of the Da Vinci family: convolutions and products for cube cores, and what vector cores do around them."""
