"""The gradients of the weights and of the bias on the DSP family."""
