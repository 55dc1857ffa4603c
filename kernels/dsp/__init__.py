"""Kernels of the DSP family: cores with scalar memory, array memory and a shared global memory."""
