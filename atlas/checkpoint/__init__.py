"""What a checkpoint contains: bytes -> header -> inventory, read from a folder or over HTTP ranges.

File headers and indexes are read here; `atlas.verification` compares them with what a model declares. This room knows no
model and reads no weights: names, shapes and dtypes come from the headers.

The rooms above import it: `verification`, `execution`, `resolution` (for a Hub configuration) and the edge. It imports only
the ground (`errors`, `dtypes`, `files`, `text`, `version`), and it is the one place that uses huggingface_hub.
"""
