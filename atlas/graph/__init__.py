"""An architecture bound to a model: ordered steps, their weights, and the tensors that store the weights.

May be imported by `analyse` and every room above it. Imports `resolution`, `evidence`, `spec`, `grammar` and the ground floor.
"""
