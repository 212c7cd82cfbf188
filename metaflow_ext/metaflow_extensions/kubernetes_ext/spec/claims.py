"""Devices by Dynamic Resource Allocation: claims of a pod (core/v1 PodResourceClaim) that its container uses."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidSpec
from . import names


@dataclass(frozen=True, kw_only=True)
class ResourceClaim:
    """`template`: every rank has a claim of its own, made from this ResourceClaimTemplate. `claim`: all share this ResourceClaim.

    `request`: only this request of the claim is for the container; None is all of them.
    """

    name: str  # in the pod
    template: str | None = None
    claim: str | None = None
    request: str | None = None

    def __post_init__(self) -> None:
        names.require_dns_label(self.name, "resource_claims: name")
        if (self.template is None) == (self.claim is None):
            raise InvalidSpec(f"resource_claims: {self.name} needs a template, of which every rank gets a claim, or a claim.")
        names.require_dns_subdomain(self.template or self.claim or "", f"resource_claims: {self.name}")
        if self.request is not None:
            names.require_dns_label(self.request, f"resource_claims: request of {self.name}")
