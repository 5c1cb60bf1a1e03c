"""Parsers for the small languages in description files: shapes, formulas, conditions and tensor names.

May be imported by every room except `checkpoint`. Imports only the ground floor.
"""
