"""Deformable convolution backward on the Da Vinci family: a convolution of resampled features, and a scatter."""
