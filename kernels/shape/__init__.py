"""Geometries: checked shapes of calls, from arguments, arrays and text."""
