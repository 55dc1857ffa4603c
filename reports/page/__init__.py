"""The page of a run: one HTML file that needs nothing else, with a timeline that zooms down to one instruction."""
