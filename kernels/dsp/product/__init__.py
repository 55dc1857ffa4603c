"""The matrix product on the DSP family."""
