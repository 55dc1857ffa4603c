"""Memories: capacity, addresses, buffers and views, ranges of bytes, boxes that a DMA can move."""
