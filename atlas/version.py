"""The version, in one place: the package, its metadata and its requests to the Hub read it here."""

__version__ = "0.1.0"
