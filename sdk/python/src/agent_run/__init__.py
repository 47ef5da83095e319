"""Forkable sandboxes for agents: the Python SDK of AgentRun.

    from agent_run import Sandbox

    with Sandbox.create("python-agent-pool") as sandbox:
        print(sandbox.exec("print('hello')").stdout)
        a, b = sandbox.fork(2)

`AgentRun` is the client, `Sandbox` a sandbox; `AsyncAgentRun` and `AsyncSandbox` are the same for asyncio, with the same names and
arguments. A **pool** keeps warm sandboxes of a **template**, which says what they look like; a **fork** is a copy of a running sandbox: memory,
processes and files. Errors are all `AgentRunError`.
"""

from ._async.client import AsyncAgentRun
from ._async.events import AsyncEventStream
from ._async.files import AsyncFiles, AsyncFileStream
from ._async.process import AsyncExecStream, AsyncProcess, AsyncTerminal
from ._async.sandbox import AsyncSandbox
from ._retry import Retry
from ._sync.client import AgentRun
from ._sync.events import EventStream
from ._sync.files import Files, FileStream
from ._sync.process import ExecStream, Process, Terminal
from ._sync.sandbox import Sandbox
from ._version import __version__
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .types import *  # noqa: F403
from .types import __all__ as _types
from .types import size

__all__ = [
    "AgentRun", "AsyncAgentRun", "AsyncEventStream", "AsyncExecStream", "AsyncFileStream", "AsyncFiles", "AsyncProcess", "AsyncSandbox",
    "AsyncTerminal", "EventStream", "ExecStream", "FileStream", "Files", "Process", "Retry", "Sandbox", "Terminal", "__version__", "size",
]
__all__ += _errors
__all__ += _types
