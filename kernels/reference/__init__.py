"""What is right: float64 references, bounds of error, and the check of a run."""
