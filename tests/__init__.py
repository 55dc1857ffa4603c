"""Tests of tilesim, and what they share: case tables and strategies."""
