"""Time: events, engines, links, hazards, programs, and the rows of the trace."""
