"""A Kubernetes for one machine, in one Python process, so that flows run where no cluster is installed.

It serves the API (`server`, `api`), keeps the objects (`store`), runs the controllers (`controllers`) and
plays the node (`node`). It knows nothing of the Metaflow extension beside it and is never shipped to a task.
"""
