"""What a container asks for of its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidSpec
from . import names
from .quantities import amount, require_bytes, whole


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one container asks for. Values are Kubernetes quantities; `limits_equal_requests` is QoS Guaranteed.

    Who asks for a whole node says with `reserved_cpu` and `reserved_memory` what of it is the system's: requests (and limits that
    equal them) are smaller by that much.
    """

    cpu: str | None = None
    memory: str | None = None
    disk: str | None = None  # ephemeral-storage
    gpu: int | None = None
    gpu_vendor: str = "nvidia"
    extended: Mapping[str, str] = field(default_factory=dict)  # resource name -> quantity
    limits_equal_requests: bool = False
    reserved_cpu: str | None = None
    reserved_memory: str | None = None

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
            if "/" in name and value % 1:  # devices; others are Kubernetes' own
                raise InvalidSpec(f"extended_resources[{name!r}] is a whole number, not {quantity}.")

        for what, size, reserved in (("cpu", self.cpu, self.reserved_cpu), ("memory", self.memory, self.reserved_memory)):
            if reserved is not None and (size is None or not 0 <= amount(reserved) < amount(size)):
                raise InvalidSpec(f"The reserved {what} is less than the {what} that is asked for ({size}), not {reserved}.")

    @property
    def available_cpu(self) -> str | None:
        """What a rank may have: `cpu` without `reserved_cpu`."""
        return _less(self.cpu, self.reserved_cpu)

    @property
    def available_memory(self) -> str | None:
        """What a rank may have, in bytes where something is reserved."""
        return _less(self.memory, self.reserved_memory)

    @property
    def gpu_resource(self) -> str:
        """The resource name of `gpu`, e.g. "nvidia.com/gpu"."""
        return f"{self.gpu_vendor}.com/gpu".lower()


def _less(size: str | None, reserved: str | None) -> str | None:
    """In thousandths where it is no whole number."""
    if size is None or reserved is None:
        return size
    left = amount(size) - amount(reserved)
    return str(int(left)) if left % 1 == 0 else f"{int(left * 1000)}m"
