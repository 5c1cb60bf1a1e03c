"""An architecture and a model bound together: steps in order, their weights, and the tensors that store them. Imports `resolution` and below."""
