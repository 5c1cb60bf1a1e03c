"""Open Model Atlas: each open language model described once, as data; counted, traced, verified and run from it."""

__version__ = "0.1.0"
