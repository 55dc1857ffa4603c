"""What set a run's end: its critical path, where its time went, and what other numbers of the chip would save."""
