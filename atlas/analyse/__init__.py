"""Exact arithmetic on a bound graph: parameter counts, memory, FLOPs, the trace, and differences between two models.

Reads `graph`, `resolution`, `evidence` and `spec`. `pages`, `verification`, `execution`, `api`, `report` and `cli` may import it.
"""
