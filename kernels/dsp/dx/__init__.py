"""The input gradient on the DSP family."""
