"""How we talk to a cluster: the only importer of `kubernetes`. Plain dicts in and out; errors are ours."""
