"""Cites and sources: where a fact is written, the lines read there, and their hash compared. Imports `spec` and below."""
