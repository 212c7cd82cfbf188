"""Metaflow's extension point for plugins. Strings only: an error while importing this makes Metaflow drop all plugins."""

STEP_DECORATORS_DESC = [
    ("kubernetes", "..decorators.kubernetes_decorator.KubernetesDecorator"),
    ("parallel", "..decorators.parallel_decorator.ParallelDecorator"),
]

CLIS_DESC = [("kubernetes", "..cli.kubernetes_cli.cli")]
