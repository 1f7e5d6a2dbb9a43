"""A server of the stateless era (2026-07-28) on the official Python SDK.

`modern.py stdio NOTES` or `modern.py http NOTES`; the latter prints its URL. What befalls a hanging call goes to the file NOTES.
"""

import asyncio
import socket
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("modern", log_level="WARNING")
notes = sys.argv[2]


def note(text: str) -> None:
    with open(notes, "a", encoding="utf-8") as file:
        file.write(text + "\n")


@server.tool()
async def echo(text: str) -> str:
    return text


@server.tool()
async def hang() -> str:
    note("called")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "too late"


@server.tool()
async def grow(context: Context) -> str:
    server.add_tool(echo, name="grown")
    await context.notify_tools_changed()
    return "grown"


async def serve_http() -> None:
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])


if sys.argv[1] == "http":
    asyncio.run(serve_http())
else:
    server.run("stdio")
