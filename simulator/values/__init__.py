"""Numbers: data types, the order in which values are made, and the race check."""
