"""The small languages of the description: shapes, formulas, conditions and names of tensors. Imports only the ground floor."""
