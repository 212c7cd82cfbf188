"""How an AppWrapper treats what it wraps when that fails. Other kinds of workload have nothing like it.

Source: project-codeflare/appwrapper v1.2.0, api/v1beta2/appwrapper_types.go and the controller's reading of its annotations.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidSpec
from .fields import is_whole

_MAX_SECONDS = 24 * 60 * 60  # the controller's own ceiling of grace periods, unless it is configured
_PERIODS = (
    "retry_pause",
    "failure_grace",
    "warmup_grace",
    "admission_grace",
    "forceful_deletion_grace",
    "deletion_on_failure_grace",
)


@dataclass(frozen=True, kw_only=True)
class FaultTolerance:
    """Times are seconds; None is the controller's default.

    `retry_limit`: how often it starts again, within one attempt of @retry; none unless asked for, since retries are Metaflow's.
    `failure_grace`: from a failed pod to the decision. `warmup_grace`: until all pods run. `admission_grace`: until all pods
    exist. `deletion_on_failure_grace`: for which pods stay after the last failure, as evidence. Exit codes: these alone (or all
    but these) are worth another try.
    """

    retry_limit: int = 0
    retry_pause: int | None = None
    failure_grace: int | None = None
    warmup_grace: int | None = None
    admission_grace: int | None = None
    forceful_deletion_grace: int | None = None
    deletion_on_failure_grace: int = 600
    terminal_exit_codes: tuple[int, ...] = ()
    retryable_exit_codes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not is_whole(self.retry_limit) or not 0 <= self.retry_limit < 2**31:
            raise InvalidSpec(f"fault_tolerance: retry_limit is a whole number of at least 0, not {self.retry_limit!r}.")
        for name in _PERIODS:
            seconds = getattr(self, name)
            if seconds is not None and (not is_whole(seconds) or not 0 <= seconds <= _MAX_SECONDS):
                raise InvalidSpec(f"fault_tolerance: {name} is a number of seconds from 0 to {_MAX_SECONDS}, not {seconds!r}.")
        for name in ("terminal_exit_codes", "retryable_exit_codes"):
            codes = getattr(self, name)
            if not isinstance(codes, tuple) or not all(is_whole(code) and 0 < code < 256 for code in codes):
                raise InvalidSpec(f"fault_tolerance: {name} are exit codes from 1 to 255, not {codes!r}.")
        if self.terminal_exit_codes and self.retryable_exit_codes:
            raise InvalidSpec("fault_tolerance has terminal_exit_codes or retryable_exit_codes, not both.")
