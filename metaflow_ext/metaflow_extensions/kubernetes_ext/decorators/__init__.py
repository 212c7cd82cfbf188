"""The Metaflow front end: hooks of a few lines around pure functions.

What a task's container imports (the decorators and their task hooks) needs nothing but metaflow and runs on Python 3.8;
everything of the client (spec/, runtime/, ...) is imported inside the functions that need it.
"""
