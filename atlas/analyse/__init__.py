"""Arithmetic on a bound graph: parameter counts, trace, bytes, FLOPs, KV cache, facts and differences.

Imports `graph` and the rooms below it; imported by `pages`, `verification`, `execution`, `api`, `report` and `cli`.
"""
