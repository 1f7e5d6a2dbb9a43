// A client made with the JavaScript SDK of A2A: sdk_client.cjs VERSION, where VERSION is 0.3 or 1.0.
'use strict';

const { randomUUID } = require('node:crypto');
const { obey } = require('../../fixtures/a2a-peers/peer.cjs');
const { View } = require('./view.cjs');

const [version] = process.argv.slice(2);
const name = version === '0.3' ? 'a2a-js-sdk-0.3' : '@a2a-js/sdk';
const { ClientFactory, JsonRpcTransportFactory, ServiceParameters, withA2AExtensions } = require(`${name}/client`);

const params = ({ text, data = [], context, task }) => ({
  message: {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    contextId: context,
    taskId: task,
    parts: [{ kind: 'text', text }, ...data.map((data) => ({ kind: 'data', data }))],
  },
});

const request = ({ text, data = [], context = '', task = '' }) =>
  require(name).SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      contextId: context,
      taskId: task,
      parts: [{ text }, ...data.map((data) => ({ data }))],
    },
  });

const clients = new Map();

/** A client of the agent at this address, made from its card. */
async function client(url) {
  if (!clients.has(url)) {
    const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory()] });
    clients.set(url, await factory.createFromUrl(url));
  }
  return clients.get(url);
}

/** Sends a message and reads the stream: `url`, `text`, optionally `data`, `context`, `task`, `extension`. */
async function ask(command) {
  const old = version === '0.3';
  const { extension, url } = command;
  const options = extension && { serviceParameters: ServiceParameters.create(withA2AExtensions(extension)) };
  const view = new View();
  const sent = old ? params(command) : request(command);
  for await (const event of (await client(url)).sendMessageStream(sent, options)) {
    view.add(old ? event : require(name).StreamResponse.toJSON(event));
  }
  view.finish();
}

obey({ ask });
