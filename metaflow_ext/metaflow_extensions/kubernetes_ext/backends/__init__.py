"""Pairs what builds a kind of workload with what reads it. Still pure."""
