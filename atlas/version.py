"""The version, where every file may read it; the distribution takes it from here."""

__version__ = "0.1.0"
