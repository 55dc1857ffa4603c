"""`python -m tilesim` is the command `tilesim`."""

from tilesim.cli.main import main

main()
