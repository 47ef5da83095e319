"""When a request is sent again."""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass
from typing import Mapping, Optional

# Answers that say "not now". 429 comes before anything was done; with 503 a part of it may have been, and a gateway's 502 and 504 don't know.
REFUSED = frozenset({429})
UNSURE = frozenset({502, 503, 504})


@dataclass(frozen=True)
class Retry:
    """How often and how patiently requests are repeated that can be repeated without doing something twice.

    Attributes:
        attempts: how often a request is sent at most; 1 doesn't repeat.
        base: seconds that the first wait takes at most; each further one twice as long.
        cap: seconds that any wait takes at most, also where the server asks for more.
    """

    attempts: int = 3
    base: float = 0.2
    cap: float = 8.0

    def wait(self, attempt: int, headers: Optional[Mapping[str, str]] = None) -> float:
        """Returns how long to wait after the attempt (from 1). Clients that failed together don't come back together."""
        most = min(self.cap, self.base * float(2 ** min(attempt - 1, 30)))
        wait = most * (0.5 + random.random() / 2)
        asked = retry_after(headers.get("retry-after") if headers else None)
        return min(self.cap, max(wait, asked * (1 + random.random() / 4)))


def retry_after(value: Optional[str]) -> float:
    """Returns the seconds of a Retry-After header; 0 if there is none that can be read."""
    if not value:
        return 0
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0
