"""Writes sdk.json: the results of the official Python SDK 1.3.0 for the objects below.

    python -m venv v && v/bin/pip install 'a2a-sdk[signing]==1.3.0' && v/bin/python make.py > sdk.json
"""

import copy
import json
import sys

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import conversions as c, types as t
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2 as p
from a2a.utils import signing

TEXT = {"text": "héllo\n", "metadata": {"a": {"b": [1.5, None, True]}}}
PARTS = [
    TEXT,
    {"text": ""},
    {"raw": "aGVsbG8=", "filename": "a.txt", "mediaType": "text/plain"},
    {"url": "https://e.example/x", "mediaType": "image/png", "metadata": {"k": "v"}},
    {"data": {"kind": "text", "role": "user"}},
    {"data": [1, "two", None]},
    {"data": "plain", "metadata": {"k": 1}},
    {"data": {"value": 3}},
]
MESSAGE = {
    "messageId": "m1", "role": "ROLE_USER", "contextId": "c", "taskId": "t", "parts": PARTS,
    "metadata": {"role": "ROLE_USER", "n": {}}, "extensions": ["https://e.example/x"], "referenceTaskIds": ["t0"],
}
SHORT = {"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
ARTIFACT = {"artifactId": "a", "name": "n", "description": "d", "parts": PARTS, "metadata": {"x": 1}, "extensions": ["e"]}
STATES = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "CANCELED", "FAILED", "REJECTED", "AUTH_REQUIRED"]


def status(state, **more):
    return {"state": f"TASK_STATE_{state}", **more}


TASK = {
    "id": "t", "contextId": "c", "status": status("WORKING", message=SHORT, timestamp="2026-11-22T03:04:05.678Z"),
    "artifacts": [ARTIFACT], "history": [MESSAGE, SHORT], "metadata": {"trace_id": "x"},
}
PUSH = {"id": "p", "url": "https://e.example/hook", "token": "tok",
        "authentication": {"scheme": "Bearer", "credentials": "secret"}}
EVENTS = [
    {"task": TASK},
    {"task": {"id": "t", "contextId": "c", "status": status("SUBMITTED")}},
    {"message": MESSAGE},
    {"message": SHORT},
    {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": ARTIFACT, "append": True, "metadata": {"y": 2}}},
    {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "b", "parts": [{"text": "x"}]},
                        "lastChunk": True}},
] + [{"statusUpdate": {"taskId": "t", "contextId": "c", "status": status(state), "metadata": {"s": state}}}
     for state in STATES]
SENDS = [
    {"message": SHORT | {"role": "ROLE_USER"}},
    {"message": MESSAGE, "metadata": {"m": 1}, "configuration": {
        "acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": True,
        "taskPushNotificationConfig": PUSH}},
]

SCOPES = {"read": "reads", "write": "writes"}


def oauth(**flow):
    return {"oauth2SecurityScheme": {"description": "o", "flows": flow, "oauth2MetadataUrl": "https://o.example/meta"}}


FULL = {
    "name": "Full", "description": "Says all", "version": "1.2.3", "documentationUrl": "https://d.example",
    "iconUrl": "https://i.example/i.png", "provider": {"url": "https://p.example", "organization": "P"},
    "supportedInterfaces": [
        {"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "x"},
        {"url": "https://a.example/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        {"url": "https://a.example/", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
    ],
    "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": True, "extensions": [
        {"uri": "https://x.example", "description": "x", "required": True, "params": {"€": 1e30, "a": [1, 2.5, ""], "Z": {}}}]},
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"description": "k", "location": "header", "name": "X-Key"}},
        "http": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}},
        "code": oauth(authorizationCode={"authorizationUrl": "https://o.example/a", "tokenUrl": "https://o.example/t",
                                         "refreshUrl": "https://o.example/r", "scopes": SCOPES}),
        "client": oauth(clientCredentials={"tokenUrl": "https://o.example/t", "scopes": SCOPES}),
        "implicit": oauth(implicit={"authorizationUrl": "https://o.example/a", "scopes": SCOPES}),
        "password": oauth(password={"tokenUrl": "https://o.example/t", "scopes": SCOPES}),
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://o.example/.well-known"}},
        "mtls": {"mtlsSecurityScheme": {"description": "certificate"}},
    },
    "securityRequirements": [{"schemes": {"key": {"list": []}, "code": {"list": ["read"]}}}, {"schemes": {"http": {}}}],
    "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain", "application/json"],
    "skills": [
        {"id": "s", "name": "S", "description": "does", "tags": ["t"], "examples": ["e"], "inputModes": ["i"],
         "outputModes": ["o"], "securityRequirements": [{"schemes": {"code": {"list": ["write"]}}}]},
        {"id": "s2", "name": "S2", "description": "", "tags": []},
    ],
}
DEVICE = copy.deepcopy(FULL)
DEVICE["securitySchemes"] = {"device": oauth(deviceCode={
    "deviceAuthorizationUrl": "https://o.example/d", "tokenUrl": "https://o.example/t", "scopes": {}})}
SMALL = {"name": "Small", "description": "", "version": "1", "capabilities": {}, "skills": [],
         "supportedInterfaces": [{"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
         "defaultInputModes": [], "defaultOutputModes": ["text"]}


def v1(kind, value):
    return ParseDict(copy.deepcopy(value), kind())


def old(model, nulls=False):
    return model.model_dump(mode="json", by_alias=True, exclude_none=not nulls)


def pairs():
    for event in EVENTS:
        message = v1(p.StreamResponse, event)
        yield {"what": "event", "v1": MessageToDict(message), "v03": old(c.to_compat_stream_response(message, 1))["result"]}
    for send in SENDS:
        message = v1(p.SendMessageRequest, send)
        yield {"what": "send", "v1": MessageToDict(message), "v03": old(c.to_compat_send_message_request(message, 1))["params"]}
    message = v1(p.TaskPushNotificationConfig, PUSH | {"taskId": "t"})
    yield {"what": "push", "v1": MessageToDict(message), "v03": old(c.to_compat_task_push_notification_config(message))}
    yield {"what": "card", "v1": MessageToDict(v1(p.AgentCard, FULL)), "v03": old(c.to_compat_agent_card(v1(p.AgentCard, FULL)))}


def parsed(pair):
    """Returns what the SDK parses from its own 0.3 output."""
    if pair["what"] == "event":
        kinds = {"task": t.Task, "message": t.Message, "status-update": t.TaskStatusUpdateEvent,
                 "artifact-update": t.TaskArtifactUpdateEvent}
        return kinds[pair["v03"]["kind"]].model_validate(pair["v03"])
    kinds = {"send": t.MessageSendParams, "push": t.TaskPushNotificationConfig, "card": t.AgentCard}
    return kinds[pair["what"]].model_validate(pair["v03"])


def up(what, read):
    """Converts from 0.3 to 1.0."""
    if what == "event":
        return c.to_core_stream_response(t.SendStreamingMessageSuccessResponse(id=1, result=read))
    if what == "send":
        return c.to_core_send_message_request(t.SendMessageRequest(id=1, params=read))
    return c.to_core_task_push_notification_config(read) if what == "push" else c.to_core_agent_card(read)


def canonical(card):
    return signing._canonicalize_agent_card(card)


def signed():
    keys = [
        ("ES256", ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
        ("RS256", rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
    ]
    for alg, key, algorithm in keys:
        jwk = json.loads(algorithm.to_jwk(key.public_key()))
        jwk = {k: v for k, v in jwk.items() if k != "key_ops"} | {"kid": f"key-{alg}"}
        header = {"alg": alg, "typ": "JOSE", "kid": f"key-{alg}", "jku": "https://never.example/fetched"}
        card = signing.create_agent_card_signer(key, header, {"note": "unprotected"})(v1(p.AgentCard, FULL))
        yield {"alg": alg, "keys": {"keys": [jwk]}, "card": agent_card_to_dict(card)}


out = {"made_with": "a2a-sdk 1.3.0 (Python)", "pairs": [], "cards": [], "signed": list(signed())}
for pair in pairs():
    read = parsed(pair)
    out["pairs"].append(pair | {"nulls": old(read, nulls=True), "back": MessageToDict(up(pair["what"], read))})
for card in [FULL, DEVICE, SMALL]:
    read = v1(p.AgentCard, card)
    served = agent_card_to_dict(read)
    out["cards"].append({"pure": MessageToDict(read), "merged": served, "canonical": canonical(read),
                         "canonical_merged": canonical(parse_agent_card(copy.deepcopy(served)))})
json.dump(out, sys.stdout, indent=1, ensure_ascii=False)
print()
