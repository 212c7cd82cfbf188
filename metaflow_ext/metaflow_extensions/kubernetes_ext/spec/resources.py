"""What a container asks for of its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidSpec
from . import names
from .quantities import amount, require_bytes, whole


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one container asks for. Values are Kubernetes quantities; `limits_equal_requests` is QoS Guaranteed."""

    cpu: str | None = None
    memory: str | None = None
    disk: str | None = None  # ephemeral-storage
    gpu: int | None = None
    gpu_vendor: str = "nvidia"
    extended: Mapping[str, str] = field(default_factory=dict)  # resource name -> quantity
    limits_equal_requests: bool = False

    def __post_init__(self) -> None:
        if self.cpu is not None and amount(self.cpu) <= 0:
            raise InvalidSpec(f"cpu must be greater than 0, not {self.cpu}.")
        for what, quantity in (("memory", self.memory), ("disk", self.disk)):
            if quantity is not None:
                if amount(quantity) <= 0:
                    raise InvalidSpec(f"{what} must be greater than 0, not {quantity}.")
                require_bytes(quantity, what)
        if self.gpu is not None:
            whole(self.gpu, "gpu")
            names.require_label_key(self.gpu_resource, f"gpu_vendor {self.gpu_vendor!r}: resource")
        for name, quantity in self.extended.items():
            names.require_label_key(name, "extended_resources:")
            try:
                value = amount(str(quantity))
            except InvalidSpec as error:
                raise InvalidSpec(f"extended_resources[{name!r}]: {error}") from None
            if value < 0:
                raise InvalidSpec(f"extended_resources[{name!r}] must not be negative, not {quantity}.")

    @property
    def gpu_resource(self) -> str:
        """The resource name of `gpu`, e.g. "nvidia.com/gpu"."""
        return f"{self.gpu_vendor}.com/gpu".lower()
