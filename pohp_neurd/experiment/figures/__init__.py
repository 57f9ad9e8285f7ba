"""Figures, from rows that others have written. The only room that imports matplotlib; `request` does not."""
