"""`python -m agent_run` prints the SDK's version, and which server it finds."""

from __future__ import annotations

import platform
import sys

from . import AgentRun, AgentRunError, Retry, __version__


def main() -> int:
    print(f"agent-run {__version__} (Python {platform.python_version()})")
    try:
        with AgentRun(timeout=5, connect_timeout=3, retry=Retry(attempts=1)) as client:
            c = client.config
            print(f"endpoint {c.endpoint} (from {c.source}), API key {c.api_key.split('.')[0] if c.api_key else 'none'}")
            print(f"server {client.server().version}")
    except AgentRunError as e:
        print(f"agent_run: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
