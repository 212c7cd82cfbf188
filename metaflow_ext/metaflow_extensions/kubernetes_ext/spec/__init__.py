"""What to run: frozen dataclasses that know nothing of Kubernetes' API, of Metaflow or of TorchX. Standard library only."""
