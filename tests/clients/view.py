"""The user's view of a task in a client of CAIPE. Reads the events of A2A 0.3 and 1.0."""

from peer import say

RESULTS = ("final_result", "partial_result", "complete_result", "error_result")
NOTIFICATIONS = ("tool_notification_start", "tool_notification_end", "tool_output")
PLANS = ("execution_plan_update", "execution_plan_status_update")
UPDATES = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}


class View:
    """Prints a line for each event and, at the end, one for each streamed text."""

    def __init__(self):
        self.streamed = {}

    def add(self, event):
        kind, body = unwrapped(event)
        if kind == "task":
            say(task={"id": body["id"], "context": body["contextId"], "state": state(body)})
        elif kind == "status-update":
            say(status={"state": state(body), "text": text_of(body["status"].get("message") or {})})
        elif kind == "artifact-update":
            self.artifact(body["artifact"], body.get("append", False))
        else:
            say(other=body)

    def artifact(self, artifact, append):
        name, text, metadata = artifact.get("name", ""), text_of(artifact), artifact.get("metadata") or {}
        about = {
            "source": metadata.get("sourceAgent"),
            "kind": metadata.get("agentType"),
            "step": metadata.get("plan_step_id"),
        }
        if name == "streaming_result":
            self.stream(artifact["artifactId"], text, append, about)
            say(chunk={"text": text, "append": append, **about})
        elif name in NOTIFICATIONS:
            say(notification={"name": name, "description": artifact.get("description"), "text": text, **about})
        elif name in PLANS:
            say(plan={"name": name, "steps": data_of(artifact).get("steps")})
        elif name == "UserInputMetaData":
            say(form={**data_of(artifact), "text": text})
        elif name in RESULTS:
            say(result={"name": name, "text": text, **about})
        else:
            say(other=artifact)

    def stream(self, artifact, text, append, about):
        known = self.streamed.setdefault(artifact, {"text": "", **about})
        known["text"] = known["text"] + text if append else text

    def replace_texts(self, task):
        """Replaces the texts with those of the task that the SDK assembled."""
        for artifact in task.get("artifacts", []):
            if artifact["artifactId"] in self.streamed:
                self.streamed[artifact["artifactId"]]["text"] = text_of(artifact)

    def finish(self):
        for streamed in self.streamed.values():
            say(streamed=streamed)


def unwrapped(event):
    """Returns the kind and the content of an event: an event of 0.3 has a `kind`, one of 1.0 or of REST is wrapped."""
    if "kind" in event:
        return event["kind"], event
    ((name, body),) = event.items()
    return UPDATES.get(name, name), body


def parts(holder):
    return holder.get("parts") or holder.get("content") or []


def text_of(holder):
    return "".join(part.get("text", "") for part in parts(holder))


def data_of(artifact):
    """Returns the data of an artifact; REST of 0.3 wraps it once more."""
    data = next((part["data"] for part in parts(artifact) if "data" in part), {})
    return data["data"] if set(data) == {"data"} else data


def state(holder):
    """Returns the name of the state in 0.3."""
    return holder["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
