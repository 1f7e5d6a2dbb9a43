"""A client made with the Python SDK of A2A, of the installed version, 0.3 or 1.0: sdk_client.py."""

import asyncio
import uuid

import a2a.types
import httpx

from peer import obey
from view import View

IS_OLD = hasattr(a2a.types, "TextPart")


class Client:
    """Fetches the card of an agent and streams the answers to messages."""

    def __init__(self):
        self.clients = {}

    async def __call__(self, command):
        await getattr(self, command["do"])(command)

    async def ask(self, command):
        """Sends a message and reads the stream: `url`, `text`, optionally `data`, `context`, `task`, `extension`."""
        url = command["url"]
        if url not in self.clients:
            # The SDK's default timeout of five seconds is too short for a blocking call.
            self.clients[url] = await connect(url, httpx.AsyncClient(timeout=60))
        view = View()
        send = send_0_3 if IS_OLD else send_1_0
        await send(self.clients[url], command, view)
        view.finish()


async def connect(url, http):
    if not IS_OLD:
        from a2a.client import ClientConfig, create_client

        return await create_client(url, client_config=ClientConfig(streaming=True, httpx_client=http))
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

    card = await A2ACardResolver(http, url).get_agent_card()
    return ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)


async def send_0_3(client, command, view):
    def plain(model):
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)

    types = a2a.types
    message = types.Message(
        role=types.Role.user,
        parts=[types.TextPart(text=command["text"])] + [types.DataPart(data=data) for data in command.get("data", [])],
        message_id=str(uuid.uuid4()),
        task_id=command.get("task"),
        context_id=command.get("context"),
    )
    extensions = [command["extension"]] if "extension" in command else None
    task = None
    async for task, update in client.send_message(message, extensions=extensions):
        view.add(plain(update or task))
    view.replace_texts(plain(task))


async def send_1_0(client, command, view):
    from a2a.client import ClientCallContext
    from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
    from google.protobuf.json_format import MessageToDict, ParseDict

    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": [{"text": command["text"]}] + [{"data": data} for data in command.get("data", [])],
        "contextId": command.get("context", ""),
        "taskId": command.get("task", ""),
    }
    context = ClientCallContext()
    if "extension" in command:
        context.service_parameters = ServiceParametersFactory.create([with_a2a_extensions([command["extension"]])])
    request = ParseDict({"message": message}, a2a.types.SendMessageRequest())
    async for event in client.send_message(request, context=context):
        view.add(MessageToDict(event))


asyncio.run(obey(Client(), lambda error: {"class": type(error).__name__, "message": str(error)}))
