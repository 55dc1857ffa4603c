"""The table of a sweep as a Parquet file, and the pictures of it: curves, a heat map, the Pareto front."""
