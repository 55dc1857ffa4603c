"""Deformable convolution backward on the DSP family: products of resampled features, and sums that one core owns."""
