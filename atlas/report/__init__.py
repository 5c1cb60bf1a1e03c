"""A result -> a table, or the same result as JSON. Rounding happens here and nowhere else; rich is imported only here."""
