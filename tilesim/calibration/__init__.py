"""Targets of this computer: what it measures of itself, and the file that says so."""
