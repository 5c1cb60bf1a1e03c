"""Resolves a MODEL argument (catalogue id, Hub id, config.json or params.json) to one `Model`.

May be imported by `graph` and every room above it. Imports `evidence`, `spec`, `checkpoint`, `grammar` and the ground floor.
"""
