"""`python flow.py kubernetes ...`: click commands that compute, then print."""
