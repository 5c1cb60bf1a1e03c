"""Reads Meta's model catalogue from the syntax tree of an installed `llama_models`, without executing it."""
