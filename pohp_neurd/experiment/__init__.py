"""The only layer with files, time, progress and figures."""
