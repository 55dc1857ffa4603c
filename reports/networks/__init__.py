"""Reports of networks: the times of their layers on targets, tables, what is held in memory, and a picture."""
