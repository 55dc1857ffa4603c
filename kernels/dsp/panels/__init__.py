"""Convolutions by panels: boxes of a result that stay on the chip until they are complete."""
