"""The machine: cores, engines, memories, links and barriers in time, and the numbers that they make."""
