"""The atlas in Python: `load`, `verify`, `run` and `models`, with the answers and the options of the commands.

`atlas` itself imports from here when a function is called; `atlas.cli` shares `checkpoint` and `weights`.
"""
