"""The command line: arguments in, one call of the package, a summary or one JSON object out."""
