"""Observed objects in, verdict out. Pure: no I/O, no clock (time is `Observation.at`), never an exception on odd input."""
