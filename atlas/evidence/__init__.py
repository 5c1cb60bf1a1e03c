"""Cites and sources: resolves cites, reads the cited lines and compares their hashes.

May be imported by `resolution` and every room above it. Imports `spec`, `checkpoint`, `grammar` and the ground floor.
"""
