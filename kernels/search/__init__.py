"""Finding the best tiling of a kernel on a target among those that it allows, by timing runs."""
