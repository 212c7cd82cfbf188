"""A security context that Kubernetes would not take is refused with what it may be."""

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.security import require_security_context

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize("context", [{}, RESTRICTED, {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}])
def test_what_kubernetes_takes(context: dict[str, Any]) -> None:
    require_security_context(context)


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ({"runAsRoot": True}, "has no field 'runAsRoot'; it has allowPrivilegeEscalation, "),
        ({"privileged": "yes"}, "privileged is True or False, not 'yes'"),
        ({"runAsUser": -1}, "runAsUser is a whole number from 0 to 2147483647, not -1"),
        ({"runAsUser": True}, "runAsUser is a whole number"),
        ({"capabilities": {"lose": ["ALL"]}}, "capabilities has no field 'lose'; it has add, drop"),
        ({"capabilities": {"drop": "ALL"}}, "drop is a list of texts, not 'ALL'"),
        ({"capabilities": "ALL"}, "capabilities is a dictionary, not 'ALL'"),
        ({"seccompProfile": {}}, "seccompProfile is a dictionary with 'type', not {}"),
        ({"seccompProfile": {"type": "Default"}}, "type is one of RuntimeDefault, Localhost, Unconfined"),
        ({"seccompProfile": {"type": "Localhost"}}, "localhostProfile if its type is Localhost"),
        ({"allowPrivilegeEscalation": False, "privileged": True}, "can't be False with privileged"),
        ({"procMount": "Unmasked"}, "can't be Unmasked"),
    ],
)
def test_what_it_does_not_take(context: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        require_security_context(context)
    assert text in str(caught.value)
