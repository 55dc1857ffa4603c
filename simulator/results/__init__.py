"""What a run leaves: the trace, its figures, the run and its summary, files."""
