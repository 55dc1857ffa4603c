"""Reports of saved runs: `load.load`, `report.report`, the pictures and the tables they are made of.

Nothing here simulates: a report needs only the directory that a run was saved in.
"""
