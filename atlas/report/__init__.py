"""Results as terminal text, JSON, Markdown and CSV. rich and rounding are only here; only `cli` imports this room."""
