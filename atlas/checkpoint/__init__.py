"""What a checkpoint really holds: bytes -> header -> inventory, from a folder or over HTTP ranges.

This is the *found* column; what a model declares is the other, and the two meet in `atlas.verification`.
Nothing here knows a model, and nothing here reads a weight to learn a name, a shape or a dtype.
"""
