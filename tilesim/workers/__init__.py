"""Processes of this computer that share work: one piece at a time each, and one that dies costs its piece alone."""
