"""The Kubernetes API over the store: admission (defaults, validation, quota) and the HTTP side."""
