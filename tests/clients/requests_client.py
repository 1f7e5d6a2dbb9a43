"""A client made with `requests` only, like CAIPE's Slack bot: requests_client.py HOW.

HOW is `0.3`, `1.0`, `REST 0.3` or `REST 1.0`. The body is decoded with the defaults of `requests`.
"""

import asyncio
import json
import sys
import uuid

import requests

from peer import obey, say
from view import View

# The streaming method or path.
WAYS = {
    "0.3": "message/stream",
    "1.0": "SendStreamingMessage",
    "REST 0.3": "/v1/message:stream",
    "REST 1.0": "/message:stream",
}


class Client:
    def __init__(self, how):
        self.how = how
        self.headers = {"Accept": "text/event-stream", "X-Client-Source": "slack-bot"}
        if how.endswith("1.0"):
            self.headers["A2A-Version"] = "1.0"

    async def __call__(self, command):
        await asyncio.to_thread(getattr(self, command["do"]), command)

    def ask(self, command):
        """Sends a message and reads the stream: `url`, `text`, optionally `data`, `context`, `task`, `extension`."""
        url, body = command["url"], {"message": self.message(command)}
        headers = dict(self.headers)
        if "extension" in command:
            headers["A2A-Extensions" if self.how.endswith("1.0") else "X-A2A-Extensions"] = command["extension"]
        if self.how.startswith("REST"):
            url += WAYS[self.how]
        else:
            body = {"jsonrpc": "2.0", "id": 1, "method": WAYS[self.how], "params": body}
        response = requests.post(url, json=body, headers=headers, stream=True, timeout=60)
        if response.status_code >= 300:
            raise RuntimeError(f"HTTP error {response.status_code} from {url}: {response.text}")
        follow(response)

    def call(self, command):
        """Sends a `body` to a `path`, or a GET without one, and prints the response: `url`, optionally `headers`."""
        url, headers = command["url"] + command["path"], {**self.headers, **command.get("headers", {})}
        method = "POST" if "body" in command else "GET"
        response = requests.request(method, url, json=command.get("body"), headers=headers, timeout=60)
        say(answer={"code": response.status_code, "body": response.json()})

    def message(self, command):
        old = self.how == "0.3"
        texts = [{"kind": "text", "text": command["text"]} if old else {"text": command["text"]}]
        wrap = (lambda data: {"data": data}) if self.how == "REST 0.3" else (lambda data: data)
        data = [{"kind": "data", "data": data} if old else {"data": wrap(data)} for data in command.get("data", [])]
        message = {"messageId": str(uuid.uuid4()), "role": "user" if old else "ROLE_USER"}
        message["content" if self.how == "REST 0.3" else "parts"] = texts + data
        if old:
            message["kind"] = "message"
        for name, key in (("contextId", "context"), ("taskId", "task")):
            if key in command:
                message[name] = command[key]
        return message


def follow(response):
    view = View()
    say(encoding=response.encoding)
    for data in frames(response):
        event = json.loads(data)
        if "error" in event:
            raise RuntimeError(f"A2A Error: {event['error']}")
        view.add(event.get("result", event))
    view.finish()


def frames(response):
    """Yields the data of each event: lines are trimmed, and data lines are joined without a separator."""
    rest, data = "", ""
    for piece in response.iter_content(chunk_size=None, decode_unicode=True):
        *lines, rest = (rest + piece).split("\n")
        for line in map(str.strip, lines):
            if line.startswith("data:"):
                data += line[5:].strip()
            elif not line and data:
                yield data
                data = ""
    if data:
        yield data


asyncio.run(obey(Client(sys.argv[1]), lambda error: {"class": type(error).__name__, "message": str(error)}))
