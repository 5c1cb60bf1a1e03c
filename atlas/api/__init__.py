"""The atlas in Python: a model with a method for each command. `atlas` itself imports from here, when asked."""
