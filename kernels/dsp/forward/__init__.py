"""The forward convolution on a DSP."""
