"""Meta's catalogue read from the syntax tree of an installed `llama_models`; nothing of it is executed."""
