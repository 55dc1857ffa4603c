"""Published measurements, and how far the simulator is from them."""
