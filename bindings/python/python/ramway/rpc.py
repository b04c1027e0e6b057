"""Calls between the processes of one machine: a Client calls methods of a Server over a bus of its own.

There are time limits, cancelling, and replies that are streams. See docs/guides/python.md.
"""

from ._ramway import Client, Pending, Reply, Request, Stream, method_id
from ._rpc import AsyncClient, AsyncPending, AsyncStream, MethodInfo, Server
from ._rpc_errors import CallError, Fault

__all__ = [
    "AsyncClient",
    "AsyncPending",
    "AsyncStream",
    "CallError",
    "Client",
    "Fault",
    "MethodInfo",
    "Pending",
    "Reply",
    "Request",
    "Server",
    "Stream",
    "method_id",
]

for _class in (AsyncClient, AsyncPending, AsyncStream, MethodInfo, Server):
    _class.__module__ = "ramway.rpc"
del _class
