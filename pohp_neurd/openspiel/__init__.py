"""The boundary to OpenSpiel: its games as trees, its policies and agents."""
