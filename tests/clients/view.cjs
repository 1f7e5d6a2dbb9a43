// The user's view of a task in a client of CAIPE. Reads the events of A2A 0.3 and 1.0.
'use strict';

const { say } = require('../../fixtures/a2a-peers/peer.cjs');

const RESULTS = ['final_result', 'partial_result', 'complete_result', 'error_result'];
const NOTIFICATIONS = ['tool_notification_start', 'tool_notification_end', 'tool_output'];
const PLANS = ['execution_plan_update', 'execution_plan_status_update'];
const UPDATES = { statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };

/** Prints a line for each event and, at the end, one for each streamed text. */
class View {
  #streamed = new Map();

  add(event) {
    const [kind, body] = unwrapped(event);
    if (kind === 'task') {
      say({ task: { id: body.id, context: body.contextId, state: state(body) } });
    } else if (kind === 'status-update') {
      say({ status: { state: state(body), text: textOf(body.status.message ?? {}) } });
    } else if (kind === 'artifact-update') {
      this.#artifact(body.artifact, body.append ?? false);
    } else {
      say({ other: body });
    }
  }

  #artifact(artifact, append) {
    const { name = '', description, metadata } = artifact;
    const text = textOf(artifact);
    const about = { source: metadata?.sourceAgent, kind: metadata?.agentType, step: metadata?.plan_step_id };
    if (name === 'streaming_result') {
      const before = this.#streamed.get(artifact.artifactId) ?? { text: '', ...about };
      this.#streamed.set(artifact.artifactId, { ...before, text: append ? before.text + text : text });
      say({ chunk: { text, append, ...about } });
    } else if (NOTIFICATIONS.includes(name)) {
      say({ notification: { name, description, text, ...about } });
    } else if (PLANS.includes(name)) {
      say({ plan: { name, steps: dataOf(artifact).steps } });
    } else if (name === 'UserInputMetaData') {
      say({ form: { ...dataOf(artifact), text } });
    } else if (RESULTS.includes(name)) {
      say({ result: { name, text, ...about } });
    } else {
      say({ other: artifact });
    }
  }

  finish() {
    for (const streamed of this.#streamed.values()) say({ streamed });
  }
}

/** Returns the kind and the content of an event: an event of 0.3 has a `kind`, one of 1.0 is wrapped. */
function unwrapped(event) {
  if (event.kind) return [event.kind, event];
  const [[name, body]] = Object.entries(event);
  return [UPDATES[name] ?? name, body];
}

const textOf = ({ parts = [] }) => parts.map((part) => part.text ?? '').join('');
const dataOf = ({ parts = [] }) => parts.find((part) => part.data)?.data ?? {};

/** Returns the name of the state in 0.3. */
const state = ({ status }) => status.state.replace(/^TASK_STATE_/, '').toLowerCase().replaceAll('_', '-');

module.exports = { View };
